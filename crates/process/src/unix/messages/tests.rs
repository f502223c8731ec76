//! Tests of the messages: they arrive unchanged, and noise does no harm.

use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;

use super::*;
use crate::{signal::Exit, unix::failure::Step};

fn text() -> impl Strategy<Value = OsString> {
    proptest::collection::vec(any::<u8>(), 0..40).prop_map(OsString::from_vec)
}

fn id() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn identity() -> impl Strategy<Value = Identity> {
    (any::<u32>(), any::<u32>(), proptest::collection::vec(any::<u32>(), 0..5))
        .prop_map(|(uid, gid, groups)| Identity { uid, gid, groups })
}

prop_compose! {
    fn order()(
        id in id(),
        program in text(),
        args in proptest::collection::vec(text(), 0..5),
        env in proptest::collection::vec((text(), text()), 0..5),
        working_dir in text(),
        terminal in proptest::option::of(any::<(u16, u16)>()),
        identity in proptest::option::of(identity()),
        max_processes in proptest::option::of(any::<u32>()),
    ) -> Order {
        Order { id, program, args, env, working_dir, terminal, identity, max_processes }
    }
}

fn keep() -> impl Strategy<Value = KeepOrder> {
    (any::<u32>(), text(), any::<[u8; SECRET]>()).prop_map(|(ms, dir, secret)| KeepOrder {
        span: Duration::from_millis(ms.into()),
        dir,
        secret,
    })
}

fn request() -> impl Strategy<Value = Request> {
    let grace = || any::<u32>().prop_map(|ms| Duration::from_millis(ms.into()));
    prop_oneof![
        (any::<u32>(), any::<bool>(), proptest::option::of(keep())).prop_map(
            |(max_children, control_groups, keep)| {
                Request::Configure { max_children, control_groups, keep }
            }
        ),
        (any::<u64>(), id()).prop_map(|(request, id)| Request::CloseInput { request, id }),
        (any::<u64>(), order()).prop_map(|(request, order)| Request::Spawn { request, order }),
        (any::<u64>(), id()).prop_map(|(request, id)| Request::Signal {
            request,
            id,
            signal: Signal::Quit
        }),
        (any::<u64>(), id(), grace()).prop_map(|(request, id, grace)| Request::Stop {
            request,
            id,
            grace
        }),
        (any::<u64>(), id()).prop_map(|(request, id)| Request::Members { request, id }),
        (any::<u64>(), grace()).prop_map(|(request, grace)| Request::Shutdown { request, grace }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let exit = prop_oneof![
        any::<i32>().prop_map(Exit::Code),
        (1..65).prop_map(Exit::Signal),
        Just(Exit::Lost)
    ];
    prop_oneof![
        proptest::collection::vec(text(), 0..3).prop_map(|groups| Event::Ready { groups }),
        (any::<u64>(), any::<u32>(), any::<u64>())
            .prop_map(|(request, pid, start_time)| Event::Started { request, pid, start_time }),
        (any::<u64>(), any::<i32>()).prop_map(|(request, errno)| Event::Failed {
            request,
            failure: Failure { step: Step::WorkingDir, errno }
        }),
        (id(), exit.clone()).prop_map(|(id, exit)| Event::Exited { id, exit }),
        (id(), any::<u32>(), any::<u64>(), proptest::option::of(exit))
            .prop_map(|(id, pid, start_time, exit)| Event::Held { id, pid, start_time, exit }),
        Just(Event::AllHeld),
        (any::<u64>(), any::<u32>()).prop_map(|(request, count)| Event::Done { request, count }),
        (any::<u64>(), proptest::collection::vec(any::<u32>(), 0..9))
            .prop_map(|(request, pids)| Event::Members { request, pids }),
    ]
}

proptest! {
    #[test]
    fn a_request_survives_the_trip(sent in request()) {
        prop_assert_eq!(Request::decode(&sent.encode()), Some(sent));
    }

    #[test]
    fn an_event_survives_the_trip(sent in event()) {
        prop_assert_eq!(Event::decode(&sent.encode()), Some(sent));
    }

    #[test]
    fn a_packet_of_the_wrong_length_is_refused(sent in request(), cut in 1_usize..20) {
        let mut bytes = sent.encode();
        prop_assert_eq!(Request::decode(&bytes[..bytes.len().saturating_sub(cut)]), None);
        bytes.push(0);
        prop_assert_eq!(Request::decode(&bytes), None);
    }

    #[test]
    fn noise_is_refused_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::decode(&bytes);
        let _ = Event::decode(&bytes);
    }
}

#[test]
fn a_list_longer_than_its_packet_is_refused() {
    let claims = |list: &[u8]| [&[5, 1][..], list].concat();
    assert!(Event::decode(&claims(&[1, 7])).is_some());
    // The packet claims 2^32 - 1 process ids, and has one.
    assert_eq!(Event::decode(&claims(&[0xff, 0xff, 0xff, 0xff, 0x0f, 7])), None);
}

#[test]
fn the_largest_command_fits_into_a_packet() {
    let mut command = Command {
        id: Uuid::nil(),
        program: "p".into(),
        args: Vec::new(),
        env: vec![("A".into(), "b".into()); 1000],
        working_dir: "/".into(),
        stdio: Stdio::Pipes,
        run_as: None,
        max_processes: Some(1),
    };
    while command.check().is_ok() {
        command.args.push("x".repeat(100).into());
    }
    command.args.pop();
    assert!(command.check().is_ok());
    let bytes = Request::Spawn { request: 1, order: command.into() }.encode();
    assert!(bytes.len() <= MAX_REQUEST, "{}", bytes.len());
}

#[test]
fn the_most_members_fit_into_a_packet() {
    let event = Event::Members { request: u64::MAX, pids: vec![u32::MAX; MAX_MEMBERS] };
    assert!(event.encode().len() <= MAX_EVENT);
}

#[test]
fn a_secret_is_not_in_what_is_logged_of_a_message() {
    let keep = KeepOrder { span: Duration::ZERO, dir: "/d".into(), secret: [173; SECRET] };
    let shown = format!(
        "{:?}",
        Request::Configure { max_children: 1, control_groups: true, keep: Some(keep) }
    );
    assert!(shown.contains("/d") && !shown.contains("173"), "{shown}");
}

/// A daemon of another build reads these bytes. When this fails, give the messages another version.
#[test]
fn messages_of_this_version_are_what_they_were() {
    let id = Uuid::from_u128(7);
    let keep = KeepOrder { span: Duration::from_secs(60), dir: "/d".into(), secret: [1; SECRET] };
    let requests = [
        Request::Configure { max_children: 1, control_groups: true, keep: Some(keep) },
        Request::Signal { request: 1, id, signal: Signal::Hangup },
        Request::Stop { request: 2, id, grace: Duration::from_millis(5) },
        Request::Members { request: 3, id },
        Request::Shutdown { request: 4, grace: Duration::ZERO },
        Request::CloseInput { request: 5, id },
    ];
    let events = [
        Event::Ready { groups: vec!["/g".into()] },
        Event::Started { request: 1, pid: 2, start_time: 3 },
        Event::Exited { id, exit: Exit::Code(7) },
        Event::Done { request: 1, count: 2 },
        Event::Members { request: 1, pids: vec![1, 2] },
        Event::Held { id, pid: 1, start_time: 2, exit: Some(Exit::Signal(9)) },
        Event::AllHeld,
    ];
    let all = requests.iter().map(Request::encode).chain(events.iter().map(Event::encode));
    let sum = all.flatten().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    assert_eq!((VERSION, sum), (1, 1_298_756_667));
}

#[test]
fn the_first_message_of_a_daemon_is_the_same_in_all_versions() {
    let hello = Hello { version: 0x0102_0304, secret: [9; SECRET] }.encode();
    assert_eq!(hello[..20], *b"warren-takeover\0\x04\x03\x02\x01");
    let longer = [&hello[..], b"more, of a later version"].concat();
    let read = Hello::decode(&longer).unwrap();
    assert_eq!((read.version, read.secret), (0x0102_0304, [9; SECRET]));
    assert!(Hello::decode(&hello[..51]).is_none() && Hello::decode(b"").is_none());
}
