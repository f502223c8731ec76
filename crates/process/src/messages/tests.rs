//! Tests of the messages: they arrive unchanged, and noise does no harm.

use std::os::unix::ffi::OsStringExt;

use proptest::prelude::*;

use super::*;
use crate::{failure::Step, signal::Exit};

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

fn request() -> impl Strategy<Value = Request> {
    let grace = || any::<u32>().prop_map(|ms| Duration::from_millis(ms.into()));
    prop_oneof![
        (any::<u32>(), any::<bool>()).prop_map(|(max_children, control_groups)| {
            Request::Configure { max_children, control_groups }
        }),
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
        (id(), exit).prop_map(|(id, exit)| Event::Exited { id, exit }),
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
