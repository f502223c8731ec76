//! The kept events, and their bounds.

use proptest::{collection::vec, prelude::*};
use protocol::room::{
    RoomEvent, ServerMessage,
    event::RoomClosed,
    message::{LlmToken, RoomErrorMessage},
};

use super::*;
use crate::events::Announcement;

const NOW: u64 = 1_795_171_198_228;
const START: u64 = NOW << 20;

/// An event of either sort that says `text`.
fn said(text: &str) -> EncodedEvent {
    let message = RoomErrorMessage { error: text.to_owned() };
    Announcement::both(
        RoomEvent::RoomClosed(RoomClosed { reason: text.to_owned() }),
        ServerMessage::RoomError(message),
    )
    .encode(NOW, "NZZ6LS")
}

/// A token: nothing for stock watchers.
fn token(text: &str) -> EncodedEvent {
    let token = LlmToken {
        request_id: "1".to_owned(),
        participant_id: "p".to_owned(),
        token: text.to_owned(),
        seq: 0,
    };
    Announcement::both(RoomEvent::LlmToken(token.clone()), ServerMessage::LlmToken(token))
        .encode(NOW, "A")
}

fn ring(events: usize, bytes: usize) -> Ring {
    Ring::new(Bounds { events, bytes }, NOW)
}

/// A ring that got `count` events.
fn ring_of(bounds: (usize, usize), count: usize) -> Ring {
    let mut ring = ring(bounds.0, bounds.1);
    (1..=count).for_each(|number| ring.push(&said(&format!("say {number}.")), None));
    ring
}

/// The ids of all frames after an id, and whether something was missed.
fn ids_after(ring: &mut Ring, form: Form, mut after: u64) -> Option<Vec<u64>> {
    let mut ids = Vec::new();
    loop {
        match ring.read(form, after, None) {
            RingRead::Missed => return None,
            RingRead::Nothing(last) => {
                assert!(last >= after);
                return Some(ids);
            }
            RingRead::Frames(batch) => {
                assert!(batch.last > after);
                after = batch.last;
                ids.extend(ids_of(&batch.frames));
            }
        }
    }
}

fn ids_of(frames: &Bytes) -> Vec<u64> {
    let text = std::str::from_utf8(frames).unwrap();
    assert!(text.ends_with("\n\n"));
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.map(|id| id.parse::<u64>().unwrap() - START).collect()
}

fn seen(all: bool) -> Sight {
    if all { Sight::All } else { Sight::Nothing }
}

fn if_public(source: &Source) -> Sight {
    seen(source.is_public())
}

#[test]
fn ids_begin_with_the_time_of_the_start_and_rise() {
    let mut ring = ring_of((10, 100_000), 3);
    assert_eq!(ids_after(&mut ring, Form::Messages, START).unwrap(), [1, 2, 3]);
    let later = Ring::new(Bounds::ROOM, NOW + 1);
    assert!(later.last > ring.last);
}

#[test]
fn ids_of_an_epoch_say_which_one_and_an_id_of_another_epoch_is_never_taken_for_one_of_them() {
    let filled = |epoch, count| {
        let mut ring = Ring::of_epoch(Bounds::ROOM, epoch);
        (0..count).for_each(|_| ring.push(&said("say"), None));
        ring
    };
    let (first, second) = (filled(1, 5), filled(2, 9));
    assert_eq!((first.last >> 40, second.last >> 40), (1, 2));
    assert!(second.last < 1 << 53, "a number of JavaScript");
    for old in [first.last, first.origin, START, 0, second.last + 1, u64::MAX] {
        let place = second.place(Form::Messages, Some(old));
        assert_eq!(place, StartPosition { after: second.origin, missed: true }, "{old}");
    }
    let begun = second.place(Form::Messages, Some(second.origin));
    assert_eq!(begun, StartPosition { after: second.origin, missed: false });
    assert!(filled(u64::MAX, 1).last > filled(1 << 20, 1).last);
}

#[test]
fn kept_events_are_bounded() {
    let mut ring = ring_of((4, 100_000), 10);
    assert_eq!(ring.entries.len(), 4);
    assert_eq!(ids_after(&mut ring, Form::Messages, START + 6).unwrap(), [7, 8, 9, 10]);
    assert_eq!(ids_after(&mut ring, Form::Messages, START + 5), None);
}

#[test]
fn kept_bytes_are_bounded_but_the_newest_event_always_stays() {
    let mut ring = ring_of((1000, 4096), 1000);
    assert!(ring.bytes <= 4096 && ring.entries.len() > 3, "{}", ring.entries.len());
    ring.push(&said(&"x".repeat(10_000)), None);
    assert_eq!(ring.entries.len(), 1);
    assert_eq!(ids_after(&mut ring, Form::Messages, START + 1000).unwrap(), [1001]);
    ring.push(&said("short"), None);
    assert_eq!(ring.entries.len(), 1);
    assert!(ring.bytes <= 4096);
}

#[test]
fn a_watcher_begins_with_new_events_or_after_the_last_one_that_it_has_seen() {
    let ring = ring_of((4, 100_000), 10);
    let place = |after| ring.place(Form::Messages, after);
    assert_eq!(place(None), StartPosition { after: START + 10, missed: false });
    assert_eq!(place(Some(START + 8)), StartPosition { after: START + 8, missed: false });
    assert_eq!(place(Some(START + 10)), StartPosition { after: START + 10, missed: false });
    assert_eq!(place(Some(START + 6)), StartPosition { after: START + 6, missed: false });
}

#[test]
fn an_unknown_id_gets_all_kept_events_and_a_frame_about_missed_ones() {
    let ring = ring_of((4, 100_000), 10);
    for id in [0, 17, START - 1, START, START + 5, START + 11, u64::MAX] {
        let place = ring.place(Form::Messages, Some(id));
        assert_eq!(place, StartPosition { after: START + 6, missed: true }, "{id}");
    }
}

#[test]
fn dropped_events_without_a_form_for_a_watcher_do_not_count_as_missed() {
    let mut ring = ring(4, 100_000);
    ring.push(&said("hello"), None);
    (0..100).for_each(|_| ring.push(&token("x"), None));
    assert!(!ring.place(Form::Named, Some(START + 1)).missed);
    assert_eq!(ring.read(Form::Named, START + 1, None), RingRead::Nothing(START + 101));
    assert_eq!(ring.read(Form::NamedWithIds, START + 1, None), RingRead::Missed);
    assert_eq!(ring.read(Form::Named, START, None), RingRead::Missed);
}

#[test]
fn one_frame_is_handed_out_as_it_is_kept_and_several_are_joined_once_for_all() {
    let mut ring = ring_of((10, 100_000), 3);
    let mut read = |after| match ring.read(Form::Named, after, None) {
        RingRead::Frames(batch) => batch.frames,
        other => panic!("{other:?}"),
    };
    let (one, other) = (read(START + 2), read(START + 2));
    assert_eq!(one.as_ptr(), other.as_ptr());
    let (joined, shared) = (read(START), read(START));
    assert_eq!(joined.as_ptr(), shared.as_ptr());
    let all = (1..=3).map(|number| format!("\"reason\":\"say {number}.\"")).collect::<Vec<_>>();
    let text = String::from_utf8(joined.to_vec()).unwrap();
    assert!(all.iter().all(|said| text.contains(said)), "{text}");
    assert_eq!(text.matches("event: room.closed\ndata: ").count(), 3);
}

#[test]
fn joined_frames_are_bounded_and_a_larger_frame_goes_alone() {
    let mut ring = ring(100, 10_000_000);
    let large = "x".repeat(BATCH * 2);
    for text in ["a", &large, "b"].into_iter().chain(["y".repeat(BATCH / 3).as_str(); 5]) {
        ring.push(&said(text), None);
    }
    let (mut after, mut sizes) = (START, Vec::new());
    while let RingRead::Frames(batch) = ring.read(Form::Messages, after, None) {
        sizes.push(ids_of(&batch.frames).len());
        assert!(batch.frames.len() <= BATCH || sizes.last() == Some(&1));
        after = batch.last;
    }
    assert_eq!(sizes, [1, 1, 3, 2, 1]);
}

#[test]
fn a_watcher_that_may_not_see_a_room_gets_none_of_its_events() {
    let mut ring = ring(10, 100_000);
    let source = |name: &str, public| Some(Arc::new(Source::new(name.into(), public, None)));
    ring.push(&said("secret"), source("a", false));
    ring.push(&said("open"), source("b", true));
    ring.push(&said("secret"), source("a", false));
    let RingRead::Frames(batch) = ring.read(Form::Messages, START, Some(&if_public)) else {
        panic!("the public room's event is missing")
    };
    assert_eq!((ids_of(&batch.frames), batch.last), (vec![2], START + 3));
    let read = ring.read(Form::Messages, START + 2, Some(&if_public));
    assert_eq!(read, RingRead::Nothing(START + 3));
    let own = |source: &Source| seen(source.id().as_str() == "a");
    let RingRead::Frames(batch) = ring.read(Form::Messages, START, Some(&own)) else {
        panic!("the own room's events are missing")
    };
    assert_eq!(ids_of(&batch.frames), [1, 3]);
}

/// Something that happens to a log.
#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Token,
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3000_usize).prop_map(Step::Say),
        Just(Step::Token),
        (0..3_usize).prop_map(Step::Read),
    ];
    vec(step, 0..300)
}

proptest! {
    /// A watcher gets, in order, everything that has its form, until it is told that it missed
    /// something; and it is told so exactly when something that it had not read is not kept any more.
    #[test]
    fn a_watcher_that_is_not_told_of_a_gap_has_missed_nothing(steps in steps()) {
        let mut ring = ring(12, 8_000);
        let mut cursors = [Some(START); Form::COUNT];
        let mut seen: [Vec<u64>; Form::COUNT] = Default::default();
        let mut had: [Vec<u64>; Form::COUNT] = Default::default();
        for step in steps {
            match step {
                Step::Say(length) => ring.push(&said(&"x".repeat(length)), None),
                Step::Token => ring.push(&token("x"), None),
                Step::Read(form) => {
                    let Some(after) = cursors[form] else { continue };
                    let unread = had[form].iter().find(|id| **id > after).copied();
                    let kept = ring.entries.front().map_or(u64::MAX, |entry| entry.id);
                    match ring.read(Form::ALL[form], after, None) {
                        RingRead::Missed => {
                            prop_assert!(unread.is_some_and(|id| id < kept));
                            cursors[form] = None;
                        }
                        RingRead::Nothing(last) => {
                            prop_assert_eq!(unread, None);
                            cursors[form] = Some(last);
                        }
                        RingRead::Frames(batch) => {
                            prop_assert!(unread.is_some_and(|id| id >= kept));
                            seen[form].extend(
                                had[form].iter().filter(|id| (after + 1..=batch.last).contains(id)),
                            );
                            let frames = std::str::from_utf8(&batch.frames).unwrap();
                            let count = frames.matches("data: ").count();
                            let between =
                                had[form].iter().filter(|id| (after + 1..=batch.last).contains(id));
                            prop_assert_eq!(count, between.count());
                            cursors[form] = Some(batch.last);
                        }
                    }
                    continue;
                }
            }
            for form in Form::ALL {
                if !(matches!(step, Step::Token) && form == Form::Named) {
                    had[form.index()].push(ring.last);
                }
            }
            prop_assert!(ring.entries.len() <= 12);
            prop_assert!(ring.bytes <= 8_000 || ring.entries.len() == 1);
            prop_assert_eq!(ring.bytes, ring.entries.iter().map(Entry::size).sum::<usize>());
        }
        for form in 0..Form::COUNT {
            prop_assert!(had[form].starts_with(&seen[form]));
        }
    }
}

/// One alone, and several in one piece.
#[test]
fn a_discreet_watcher_learns_that_something_happens_but_not_what() {
    let token = |seq| {
        let token = LlmToken {
            request_id: "r".to_owned(),
            participant_id: "p".to_owned(),
            token: "swordfish".to_owned(),
            seq,
        };
        Announcement::message(ServerMessage::LlmToken(token)).encode(0, "A")
    };
    let mut ring = Ring::new(Bounds::ALL_ROOMS, 0);
    let source = Arc::new(Source::new("a".into(), false, None));
    for count in 1..=2 {
        ring.push(&token(count), Some(Arc::clone(&source)));
        let read = ring.read(Form::Messages, 0, Some(&|_: &Source| Sight::Stirrings));
        let RingRead::Frames(batch) = read else { panic!("{read:?}") };
        let text = String::from_utf8(batch.frames.to_vec()).unwrap();
        assert_eq!(text.matches("\"token\":\"\"").count() as u64, count, "{text}");
        assert!(!text.contains("swordfish") && text.contains(&format!("id: {count}\n")), "{text}");
    }
}
