//! The rules of sharing, one by one.

use super::*;

const NOON: Moment = Moment { wall_ms: 20_000 * DAY_MS + DAY_MS / 2, minute: 12 * 60 };
const IDLE: MachineLoad = MachineLoad { own_load: 0.0, throttle: 100 };

fn peer(number: u8) -> PeerId {
    PeerId::Node(NodeId::new([number; 32]))
}

fn known(peer: &PeerId) -> Asker<'_> {
    Asker { peer, proved: true, sealed: true }
}

fn sharing(share: Share) -> Gate {
    Gate::new(Share { with: Sharing::Peers, ..share })
}

fn code(result: Result<(), Refusal>) -> Option<ErrorCode> {
    result.err().map(|refusal| refusal.code)
}

#[test]
fn nobody_may_ask_by_default_and_strangers_only_under_anyone() {
    let one = peer(1);
    let stranger = Asker { proved: false, sealed: true, ..known(&one) };
    let result = |share: &Share, asker| code(share.lets_in(asker));
    assert_eq!(result(&Share::default(), known(&one)), Some(ErrorCode::Unavailable));
    let peers = Share { with: Sharing::Peers, ..Share::default() };
    assert_eq!(result(&peers, known(&one)), None);
    assert_eq!(result(&peers, stranger), Some(ErrorCode::Unavailable));
    let anyone = Share { with: Sharing::Anyone, ..Share::default() };
    assert_eq!(result(&anyone, stranger), None);
}

#[test]
fn a_trusted_peer_is_let_in_where_its_identity_is_proved() {
    let (one, other) = (peer(1), peer(2));
    let trusted = vec![NodeId::new([1; 32])];
    let share = Share { with: Sharing::Peers, trusted, ..Share::default() };
    let asker = |peer, sealed| Asker { peer, proved: false, sealed };
    assert_eq!(code(share.lets_in(asker(&one, true))), None);
    assert_eq!(code(share.lets_in(asker(&one, false))), Some(ErrorCode::Unavailable));
    assert_eq!(code(share.lets_in(asker(&other, true))), Some(ErrorCode::Unavailable));
}

#[test]
fn hours_may_go_over_midnight() {
    let night = Hours { from: 22 * 60, to: 6 * 60 };
    let inside = [22 * 60, 23 * 60 + 59, 0, 6 * 60 - 1].map(|minute| night.has(minute));
    assert_eq!(inside, [true; 4]);
    assert_eq!([6 * 60, 12 * 60, 22 * 60 - 1].map(|minute| night.has(minute)), [false; 3]);
    let day = Hours { from: 9 * 60, to: 17 * 60 };
    assert!(day.has(9 * 60) && !day.has(17 * 60) && !day.has(8 * 60));
    assert!(Hours { from: 0, to: 0 }.has(700));
    let share = Share { hours: vec![night, day], ..Share::default() };
    assert!(share.pauses(NOON, IDLE).is_none());
    let evening = Moment { minute: 20 * 60, ..NOON };
    assert_eq!(share.pauses(evening, IDLE).unwrap().code, ErrorCode::Unavailable);
}

#[test]
fn heat_battery_and_its_own_work_pause_it() {
    let share = Share { max_load: Some(0.5), ..Share::default() };
    let pause = |load| share.pauses(NOON, load).map(|refusal| refusal.code);
    assert_eq!(pause(IDLE), None);
    assert_eq!(pause(MachineLoad { own_load: 0.5, ..IDLE }), None);
    assert_eq!(pause(MachineLoad { own_load: 0.6, ..IDLE }), Some(ErrorCode::QueueFull));
    assert_eq!(pause(MachineLoad { throttle: 0, ..IDLE }), Some(ErrorCode::Unavailable));
    assert_eq!(Share::default().pauses(NOON, MachineLoad { own_load: 9.0, ..IDLE }), None);
}

#[test]
fn requests_at_once_are_bounded_for_each_peer_and_for_all() {
    let (one, two, three) = (peer(1), peer(2), peer(3));
    let mut gate = sharing(Share { jobs: Some(3), jobs_per_peer: Some(2), ..Share::default() });
    let mut ask = |peer| code(gate.admit(NOON, known(peer), IDLE));
    assert_eq!([ask(&one), ask(&one)], [None; 2]);
    assert_eq!(ask(&one), Some(ErrorCode::QueueFull));
    assert_eq!([ask(&two), ask(&three)], [None, Some(ErrorCode::QueueFull)]);
    gate.settle(NOON, &one, 0);
    assert_eq!((code(gate.admit(NOON, known(&three), IDLE)), gate.running()), (None, 3));
    for peer in [&one, &two, &three] {
        gate.settle(NOON, peer, 5);
    }
    assert_eq!((gate.running(), gate.remembered()), (0, 0));
}

#[test]
fn tokens_of_a_day_begin_with_the_ledgers_sum_and_end_at_midnight() {
    let one = peer(1);
    let mut gate = sharing(Share { tokens_per_day: Some(100), ..Share::default() });
    assert!(gate.wants_used(&one));
    gate.used(NOON, &one, 90);
    assert!(!gate.wants_used(&one));
    assert_eq!(code(gate.admit(NOON, known(&one), IDLE)), None);
    gate.settle(NOON, &one, 10);
    assert_eq!(code(gate.admit(NOON, known(&one), IDLE)), Some(ErrorCode::Unavailable));
    let tomorrow = Moment { wall_ms: NOON.wall_ms + DAY_MS, ..NOON };
    assert!(!gate.wants_used(&one), "what it used since midnight was counted here");
    assert_eq!(code(gate.admit(tomorrow, known(&one), IDLE)), None);
    gate.settle(tomorrow, &one, u64::MAX);
    gate.settle(tomorrow, &one, 1);
    assert_eq!(code(gate.admit(tomorrow, known(&one), IDLE)), Some(ErrorCode::Unavailable));
    assert_eq!(
        code(gate.admit(NOON, known(&one), IDLE)),
        Some(ErrorCode::Unavailable),
        "a clock put right"
    );
}

#[test]
fn the_ledger_is_not_asked_where_no_rule_needs_it() {
    assert!(!sharing(Share::default()).wants_used(&peer(1)));
}

#[test]
fn no_more_peers_are_remembered_than_its_bound() {
    let mut gate = sharing(Share { tokens_per_day: Some(1), ..Share::default() });
    for number in 0..MAX_REMEMBERED + 10 {
        gate.used(NOON, &PeerId::Device(number.to_string()), 0);
    }
    assert!(gate.remembered() <= MAX_REMEMBERED);
}

#[test]
fn only_models_that_are_listed_are_offered_if_any_are() {
    assert!(Share::default().offers("m"));
    let share = Share { models: vec!["Org/M".to_owned()], ..Share::default() };
    assert!(share.offers("org/m") && !share.offers("m"));
}
