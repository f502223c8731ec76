//! Which client's size counts, and when.

use proptest::{collection::vec, prelude::*};

use super::*;

const DESK: ViewerId = ViewerId(1);
const PHONE: ViewerId = ViewerId(2);
const DESK_SIZE: (u16, u16) = (200, 50);
const PHONE_SIZE: (u16, u16) = (40, 30);

struct Rig {
    sizes: Sizes,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self { sizes: Sizes::new(Size::DEFAULT), now: Instant::now() }
    }

    /// A desk and a phone, both visible; the phone reported its size last.
    fn with_both() -> Self {
        let mut rig = Self::new();
        rig.shows(DESK, DESK_SIZE);
        rig.shows(PHONE, PHONE_SIZE);
        rig.settled();
        rig
    }

    fn shows(&mut self, viewer: ViewerId, size: (u16, u16)) {
        self.sizes.resize(viewer, size, true, self.now).unwrap();
    }

    fn hides(&mut self, viewer: ViewerId) {
        self.sizes.resize(viewer, (0, 0), false, self.now).unwrap();
    }

    fn typed(&mut self, viewer: ViewerId) {
        self.sizes.typed(viewer, self.now);
    }

    fn later(&mut self, passed: Duration) -> Option<(u16, u16)> {
        self.now += passed;
        self.sizes.handle_timeout(self.now);
        self.sizes.poll_output().map(pair)
    }

    /// The change, if there is one, after the longest delay.
    fn settled(&mut self) -> Option<(u16, u16)> {
        self.later(MOST_DELAY)
    }
}

fn pair(size: Size) -> (u16, u16) {
    (size.cols(), size.rows())
}

#[test]
fn the_last_typist_counts() {
    let mut rig = Rig::with_both();
    rig.typed(DESK);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.typed(PHONE);
    assert_eq!(rig.settled(), Some(PHONE_SIZE));
    rig.typed(PHONE);
    assert_eq!(rig.settled(), None);
}

#[test]
fn where_nobody_has_typed_who_told_its_size_last_counts() {
    let mut rig = Rig::new();
    rig.shows(DESK, DESK_SIZE);
    rig.shows(PHONE, PHONE_SIZE);
    assert_eq!(rig.settled(), Some(PHONE_SIZE));
    rig.shows(DESK, DESK_SIZE);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
}

#[test]
fn a_reported_size_does_not_replace_the_typists() {
    let mut rig = Rig::with_both();
    rig.typed(DESK);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.shows(PHONE, (50, 20));
    assert_eq!(rig.settled(), None);
}

#[test]
fn an_early_typist_counts_once_its_size_is_known() {
    let mut rig = Rig::with_both();
    let tablet = ViewerId(3);
    rig.typed(tablet);
    assert_eq!(rig.settled(), None);
    rig.shows(tablet, (100, 40));
    assert_eq!(rig.settled(), Some((100, 40)));
}

#[test]
fn taking_control_counts_until_another_types() {
    let mut rig = Rig::with_both();
    rig.typed(PHONE);
    rig.sizes.take_control(DESK, rig.now);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.typed(PHONE);
    assert_eq!(rig.settled(), Some(PHONE_SIZE));
}

#[test]
fn a_hidden_or_absent_viewer_does_not_count_until_it_is_visible_again() {
    let mut rig = Rig::with_both();
    rig.typed(DESK);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.hides(DESK);
    assert_eq!(rig.settled(), Some(PHONE_SIZE));
    rig.shows(DESK, DESK_SIZE);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.sizes.leave(DESK, rig.now);
    assert_eq!(rig.settled(), Some(PHONE_SIZE));
}

#[test]
fn when_nobody_is_visible_the_size_stays() {
    let mut rig = Rig::with_both();
    rig.hides(PHONE);
    rig.sizes.leave(DESK, rig.now);
    assert_eq!((rig.settled(), rig.sizes.poll_timeout()), (None, None));
    assert_eq!(pair(rig.sizes.current()), PHONE_SIZE);
    rig.shows(DESK, DESK_SIZE);
    rig.hides(DESK);
    assert_eq!(rig.settled(), None);
}

#[test]
fn a_change_waits_until_it_was_wanted_for_a_moment() {
    let mut rig = Rig::new();
    rig.shows(DESK, DESK_SIZE);
    assert_eq!(rig.sizes.poll_timeout(), Some(rig.now + DEBOUNCE));
    assert_eq!(rig.later(DEBOUNCE - Duration::from_millis(1)), None);
    assert_eq!(rig.later(Duration::from_millis(1)), Some(DESK_SIZE));
    assert_eq!((rig.settled(), rig.sizes.poll_timeout()), (None, None));
}

#[test]
fn a_window_that_is_dragged_changes_the_terminal_seldom_but_does() {
    let mut rig = Rig::new();
    let mut changes = 0;
    for cols in 100..200 {
        rig.shows(DESK, (cols, 50));
        changes += usize::from(rig.later(Duration::from_millis(16)).is_some());
    }
    assert!((2..=4).contains(&changes), "{changes} changes in 1.6 s");
    assert_eq!(rig.settled(), Some((199, 50)));
}

#[test]
fn a_change_that_is_taken_back_in_time_does_not_happen() {
    let mut rig = Rig::with_both();
    rig.typed(PHONE);
    rig.typed(DESK);
    rig.later(DEBOUNCE / 2);
    rig.typed(PHONE);
    assert_eq!((rig.settled(), rig.sizes.poll_timeout()), (None, None));
}

#[test]
fn sizes_out_of_bounds_are_refused_and_the_one_before_stays() {
    let mut rig = Rig::with_both();
    rig.typed(DESK);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    for (cols, rows) in [(2, 1), (19, 50), (200, 4), (0, 0)] {
        let refused = rig.sizes.resize(DESK, (cols, rows), true, rig.now);
        assert_eq!(refused, Err(Refused::TooSmall { cols, rows }));
    }
    for (cols, rows) in [(1001, 50), (200, 501), (u16::MAX, u16::MAX)] {
        let refused = rig.sizes.resize(DESK, (cols, rows), true, rig.now);
        assert_eq!(refused, Err(Refused::TooLarge { cols, rows }));
    }
    assert_eq!(rig.settled(), None);
    assert!(Size::new(20, 5).is_ok() && Size::new(1000, 500).is_ok());
}

#[test]
fn a_refusal_says_what_to_do() {
    let refused = Size::new(2, 1).unwrap_err().to_string();
    assert_eq!(
        refused,
        "a terminal of 2×1 is too small: the smallest is 20×5; tell that you are not visible instead"
    );
}

#[test]
fn of_too_many_clients_one_more_is_refused_and_those_before_count() {
    let mut rig = Rig::new();
    for id in 0..MAX_VIEWERS as u64 {
        rig.shows(ViewerId(id), DESK_SIZE);
    }
    let one_more = ViewerId(u64::MAX);
    let refused = rig.sizes.resize(one_more, PHONE_SIZE, true, rig.now);
    assert_eq!(refused, Err(Refused::TooMany));
    rig.typed(one_more);
    assert_eq!(rig.settled(), Some(DESK_SIZE));
    rig.shows(ViewerId(0), PHONE_SIZE);
    rig.sizes.leave(ViewerId(1), rig.now);
    rig.shows(one_more, (99, 33));
    assert_eq!(rig.settled(), Some((99, 33)));
}

#[derive(Debug, Clone)]
enum Event {
    Resize(u64, (u16, u16), bool),
    Typed(u64),
    TakeControl(u64),
    Leave(u64),
    Later(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let size = (prop::sample::select(vec![10, 20, 80, 81]), prop::sample::select(vec![4, 5, 24]));
    prop_oneof![
        (0..4_u64, size, any::<bool>()).prop_map(|(id, size, seen)| Event::Resize(id, size, seen)),
        (0..4_u64).prop_map(Event::Typed),
        (0..4_u64).prop_map(Event::TakeControl),
        (0..4_u64).prop_map(Event::Leave),
        (0..80_u64).prop_map(Event::Later),
    ]
}

/// The size that counts, found by reading the whole history.
fn expected(history: &[Event]) -> Option<(u16, u16)> {
    let best = (0..4).filter_map(|id| last_shown(history, id)).max_by_key(|(rank, _)| *rank);
    best.map(|(_, size)| size)
}

/// For a visible client: when it was last used and when it reported its size, and that size.
fn last_shown(history: &[Event], client: u64) -> Option<((usize, usize), (u16, u16))> {
    let (mut used, mut shown) = (0, None);
    for (at, event) in (1..).zip(history) {
        match event {
            Event::Typed(id) | Event::TakeControl(id) if *id == client => used = at,
            Event::Leave(id) if *id == client => (used, shown) = (0, None),
            Event::Resize(id, _, false) if *id == client => shown = None,
            Event::Resize(id, size, true) if *id == client && Size::new(size.0, size.1).is_ok() => {
                shown = Some((at, *size));
            }
            _ => {}
        }
    }
    shown.map(|(reported, size)| ((used, reported), size))
}

proptest! {
    #[test]
    fn it_comes_to_what_the_whole_history_says(events in vec(event(), 0..60)) {
        let mut rig = Rig::new();
        let mut outputs = vec![pair(Size::DEFAULT)];
        let mut changed: Option<Instant> = None;
        // The size that counted last. It stays when no client is visible.
        let mut frozen = pair(Size::DEFAULT);
        for (count, event) in (1..).zip(&events) {
            let now = rig.now;
            match *event {
                Event::Resize(id, size, seen) => drop(rig.sizes.resize(ViewerId(id), size, seen, now)),
                Event::Typed(id) => rig.sizes.typed(ViewerId(id), now),
                Event::TakeControl(id) => rig.sizes.take_control(ViewerId(id), now),
                Event::Leave(id) => rig.sizes.leave(ViewerId(id), now),
                Event::Later(millis) => {
                    if let Some(size) = rig.later(Duration::from_millis(millis)) {
                        prop_assert!(changed.is_none_or(|at| rig.now - at >= DEBOUNCE));
                        changed = Some(rig.now);
                        outputs.push(size);
                    }
                }
            }
            frozen = expected(&events[..count]).unwrap_or_else(|| pair(rig.sizes.current()));
        }
        outputs.extend(rig.settled());
        prop_assert_eq!(pair(rig.sizes.current()), frozen);
        prop_assert_eq!(*outputs.last().unwrap(), frozen);
        prop_assert!(outputs.windows(2).all(|pair| pair[0] != pair[1]));
        prop_assert!(outputs.iter().all(|(cols, rows)| *cols >= 20 && *rows >= 5));
        prop_assert_eq!(rig.settled(), None);
    }
}
