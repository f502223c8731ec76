//! The state of a room, in simulated time.

use std::{net::IpAddr, sync::atomic::Ordering};

use base::{JobId, ProviderId};
use protocol::room::{
    Capabilities, MachineSpecs, Protocol, RuntimeConfig, Selector, ServerMessage, Status,
};

use super::{LinkHandle, MAX_PARTICIPANTS, RoomEnd, RoomState};
use crate::{
    activity::JobStarted,
    error::RoomError,
    events::Announcement,
    member::{FORGOTTEN, OFFLINE},
    participant::{ConnectionEnd, JoinRequest, Kind},
    room::Available,
    token,
};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

pub(crate) fn join_request(id: &str, kind: Kind) -> JoinRequest {
    JoinRequest {
        id: id.to_owned(),
        nickname: format!("{id}'s"),
        models: vec!["m".to_owned()],
        endpoint: "http://localhost:11434".to_owned(),
        specs: MachineSpecs::default(),
        config: RuntimeConfig::default(),
        capabilities: Capabilities::default(),
        kind,
        max_concurrent: 1,
        session: None,
    }
}

fn state() -> RoomState {
    RoomState::new("room".to_owned(), None, RuntimeConfig::default())
}

/// Joins, and returns whether it is new and the token of its session.
fn join(
    state: &mut RoomState,
    request: JoinRequest,
    from: IpAddr,
    now: u64,
) -> Result<(bool, String, Vec<Announcement>), RoomError> {
    let shown = request.session.clone();
    let new = token::new_token("").expose().to_owned();
    let plan = state.plan(request, token::digest(&new), from, now)?;
    let session = shown.filter(|_| plan.known).unwrap_or(new);
    let (created, announcements) = state.join(plan, now);
    Ok((created, session, announcements))
}

fn stock(state: &mut RoomState, id: &str, now: u64) -> Vec<Announcement> {
    join(state, join_request(id, Kind::Tunnel), HERE, now).unwrap().2
}

fn provider(number: u64) -> ProviderId {
    ProviderId::from_random(number)
}

fn link(state: &mut RoomState, id: &str, number: u64, now: u64) -> LinkHandle {
    state.link(id, provider(number), now).unwrap().0
}

/// The names of the announcements, such as `participant.left room:participant-left`.
fn names(announcements: &[Announcement]) -> Vec<String> {
    let name = |announcement: &Announcement| {
        let event = announcement.event.as_ref().map(|event| event.name().to_owned());
        let message = announcement.message.as_ref().map(|message| match message {
            ServerMessage::ParticipantJoined(_) => "+".to_owned(),
            ServerMessage::ParticipantLeft(_) => "-".to_owned(),
            other => other.encode(),
        });
        [event, message].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    announcements.iter().map(name).collect()
}

fn find(state: &RoomState, selector: &str, now: u64) -> Available {
    state.find(&Selector::parse(selector), now)
}

fn known(name: &str) -> Available {
    Available::Known(name.to_owned())
}

fn ended(linked: &LinkHandle) -> Option<ConnectionEnd> {
    use std::{future::Future, pin::pin, task};
    let mut context = task::Context::from_waker(task::Waker::noop());
    match pin!(linked.end.ended()).poll(&mut context) {
        task::Poll::Ready(why) => Some(why),
        task::Poll::Pending => None,
    }
}

#[test]
fn a_stock_participants_life_is_announced_as_it_happens() {
    let mut state = state();
    assert_eq!(names(&stock(&mut state, "p", 0)), ["participant.joined +"]);
    assert_eq!(state.participant("p").unwrap().status, Status::Offline);
    let (linked, announcement) = state.link("p", provider(1), 5).unwrap();
    assert_eq!(names(&[announcement]), ["participant.updated"]);
    let info = state.participant("p").unwrap();
    assert_eq!((info.status, info.connection.connected), (Status::Online, true));
    assert_eq!((info.joined_at, info.updated_at, info.last_seen), (0, 5, 5));
    assert_eq!(info.connection.last_tunnel_seen_at, Some(5));
    let announcement = state.disconnect("p", linked.serial, 9).unwrap();
    assert_eq!(names(&[announcement]), ["participant.updated"]);
    assert_eq!(state.participant("p").unwrap().status, Status::Offline);
    let announcement = state.remove("p", ConnectionEnd::Removed).unwrap();
    assert_eq!(names(&[announcement]), ["participant.left -"]);
    assert_eq!(state.count(), 0);
}

#[test]
fn a_silent_participant_is_reported_offline_once_and_back_when_it_returns() {
    let mut state = state();
    stock(&mut state, "p", 0);
    let linked = link(&mut state, "p", 1, 0);
    assert!(state.sweep(OFFLINE * 10, OFFLINE * 10).announcements.is_empty(), "it is connected");
    linked.seen.store(1_000, Ordering::Relaxed);
    state.disconnect("p", linked.serial, 2_000);
    assert!(state.sweep(OFFLINE + 999, OFFLINE + 999).announcements.is_empty());
    assert_eq!(
        names(&state.sweep(OFFLINE + 1_000, OFFLINE + 1_000).announcements),
        ["participant.offline -"]
    );
    assert!(state.sweep(OFFLINE * 3, OFFLINE * 3).announcements.is_empty(), "once");
    assert_eq!(names(&stock(&mut state, "p", OFFLINE * 4)), ["participant.updated"]);
    let (_, announcement) = state.link("p", provider(2), OFFLINE * 4).unwrap();
    assert_eq!(names(&[announcement]), ["participant.updated +"]);
}

#[test]
fn heartbeats_keep_a_participant_from_being_offline() {
    let mut state = state();
    stock(&mut state, "p", 0);
    state.member_mut("p").unwrap().heard(OFFLINE);
    assert!(state.sweep(2 * OFFLINE - 1, 2 * OFFLINE - 1).announcements.is_empty());
    assert_eq!(state.sweep(2 * OFFLINE, 2 * OFFLINE).announcements.len(), 1);
}

#[test]
fn a_participant_that_was_gone_for_a_day_is_forgotten() {
    let mut state = state();
    stock(&mut state, "gone", 0);
    stock(&mut state, "there", 0);
    let _linked = link(&mut state, "there", 1, 0);
    assert_eq!(state.sweep(FORGOTTEN - 1, FORGOTTEN - 1).forgotten, Vec::<String>::new());
    let swept = state.sweep(FORGOTTEN, FORGOTTEN);
    assert_eq!(swept.forgotten, ["gone"]);
    assert_eq!(names(&swept.announcements), ["participant.left"], "it was told to be gone already");
    assert_eq!(state.count(), 1);
}

#[test]
fn a_closed_room_ends_every_connection() {
    let mut state = state();
    stock(&mut state, "p", 0);
    let linked = link(&mut state, "p", 1, 0);
    assert!(state.close(RoomEnd::Closed) && !state.close(RoomEnd::Moved));
    assert_eq!(ended(&linked), Some(ConnectionEnd::RoomClosed));
    assert_eq!((state.count(), state.is_used()), (0, false));
}

/// A stranger's PUT with the id of somebody else must not throw it out of routing.
#[test]
fn an_id_that_is_taken_is_only_its_owners() {
    let mut state = state();
    let (_, session, _) = join(&mut state, join_request("p", Kind::Tunnel), HERE, 0).unwrap();
    let tunnel = state.member_mut("p").unwrap().tunnel_token(0);
    let linked = link(&mut state, "p", 1, 0);
    let stranger = || join_request("p", Kind::Tunnel);
    let refused = join(&mut state, stranger(), THERE, 1);
    assert!(matches!(refused, Err(RoomError::Conflict(id)) if id == "p"));
    let wrong = JoinRequest { session: Some("guessed".to_owned()), ..stranger() };
    assert!(join(&mut state, wrong, THERE, 1).is_err());
    let own = JoinRequest { session: Some(session.clone()), ..stranger() };
    let (created, token, _) = join(&mut state, own, THERE, 1).unwrap();
    assert_eq!((created, &token), (false, &session), "it keeps its token");
    assert_eq!(ended(&linked), None, "and its connection");
    assert!(join(&mut state, stranger(), THERE, 1).is_err(), "an address that showed a token");
    state.disconnect("p", linked.serial, 2);
    assert!(join(&mut state, stranger(), HERE, OFFLINE + 1).is_err());
    let (created, other, _) = join(&mut state, stranger(), HERE, OFFLINE + 2).unwrap();
    assert!(!created && other != session, "after 30 s it is anybody's");
    let third = join(&mut state, stranger(), THERE, 2 * OFFLINE + 1);
    assert!(third.is_err(), "and then theirs for 30 s, connected or not yet");
    assert!(!state.member("p").unwrap().is_session(Some(&session)));
    assert!(!state.member_mut("p").unwrap().redeem(tunnel.expose(), 3), "nor is its tunnel");
}

#[test]
fn a_stock_participant_is_known_by_its_address_and_a_worker_by_its_token_alone() {
    let mut state = state();
    stock(&mut state, "stock", 0);
    let linked = link(&mut state, "stock", 1, 0);
    assert_eq!(names(&stock(&mut state, "stock", 1)), ["participant.updated"]);
    assert_eq!(ended(&linked), None);
    assert!(join(&mut state, join_request("stock", Kind::Worker), HERE, 1).is_err());
    let worker = || join_request("worker", Kind::Worker);
    let (_, session, _) = join(&mut state, worker(), HERE, 0).unwrap();
    let first = link(&mut state, "worker", 2, 0);
    assert!(join(&mut state, worker(), HERE, 1).is_err(), "a second link shows the token");
    assert!(join(&mut state, join_request("worker", Kind::Tunnel), HERE, 1).is_err());
    let own = JoinRequest { session: Some(session), ..worker() };
    assert!(!join(&mut state, own, THERE, 1).unwrap().0);
    let second = link(&mut state, "worker", 3, 1);
    assert_eq!((ended(&first), ended(&second)), (Some(ConnectionEnd::Superseded), None));
}

#[test]
fn a_participant_that_is_elsewhere_now_is_connected_anew() {
    let mut state = state();
    let at = |port: u16| Kind::Endpoint((HERE, port).into());
    join(&mut state, join_request("p", at(1)), HERE, 0).unwrap();
    assert_eq!(state.uncalled(), ["p"]);
    let linked = link(&mut state, "p", 1, 0);
    assert_eq!(state.uncalled(), Vec::<String>::new());
    join(&mut state, join_request("p", at(1)), HERE, 1).unwrap();
    assert_eq!(ended(&linked), None);
    join(&mut state, join_request("p", at(2)), HERE, 2).unwrap();
    assert_eq!(ended(&linked), Some(ConnectionEnd::Superseded));
    assert_eq!(state.uncalled(), ["p"]);
}

#[test]
fn a_tunnels_token_is_good_once_and_for_a_minute() {
    let mut state = state();
    stock(&mut state, "p", 0);
    let member = state.member_mut("p").unwrap();
    let (one, other) = (member.tunnel_token(0), member.tunnel_token(0));
    assert!(!member.redeem("guessed", 0));
    assert!(member.redeem(one.expose(), 59_999));
    assert!(!member.redeem(one.expose(), 59_999), "used");
    assert!(!member.redeem(other.expose(), 60_000), "too old");
    let first = member.tunnel_token(0);
    (0..4).for_each(|_| drop(member.tunnel_token(0)));
    assert!(!member.redeem(first.expose(), 1), "only the last few are kept");
}

#[test]
fn selectors_find_connected_participants() {
    let mut state = state();
    stock(&mut state, "p", 0);
    for selector in ["*", "m", "model:m"] {
        assert_eq!(find(&state, selector, 1), Available::Empty, "{selector}");
    }
    assert_eq!(find(&state, "p", 1), Available::Disconnected { id: "p".to_owned() });
    let linked = link(&mut state, "p", 1, 1);
    assert_eq!(find(&state, "any", 1), known("room:any"));
    assert_eq!(find(&state, "p", 1), known("room:participant/p"));
    assert_eq!(find(&state, "model:m", 1), known("m"));
    assert_eq!(find(&state, "m", 1), known("m"));
    for nobody in ["model:p", "other", "room:any", "room:participant/p", ""] {
        assert_eq!(find(&state, nobody, 1), Available::Nobody, "{nobody}");
    }
    state.disconnect("p", linked.serial, 1);
    assert_eq!(find(&state, "*", 1), Available::Empty, "a stock participant does not come back");
}

#[test]
fn a_worker_that_comes_back_by_itself_is_waited_for() {
    let mut state = state();
    join(&mut state, join_request("w", Kind::Worker), HERE, 0).unwrap();
    let linked = link(&mut state, "w", 1, 0);
    state.disconnect("w", linked.serial, 1_000);
    assert_eq!(find(&state, "w", 10_999), known("room:participant/w"));
    assert_eq!(find(&state, "*", 10_999), known("room:any"));
    assert_eq!(find(&state, "m", 10_999), known("m"));
    assert_eq!(find(&state, "w", 11_000), Available::Disconnected { id: "w".to_owned() });
    assert_eq!(find(&state, "m", 11_000), Available::Empty);
}

#[test]
fn a_connected_participants_models_may_change() {
    let mut state = state();
    stock(&mut state, "p", 0);
    let linked = link(&mut state, "p", 1, 0);
    let texts = |models: &[&str]| models.iter().map(|&model| model.to_owned()).collect::<Vec<_>>();
    let new = texts(&["n", "*", "room:any", "a\nb", "n"]);
    let announcement = state.set_models("p", linked.serial, new.clone(), 7).unwrap();
    assert_eq!(names(&[announcement]), ["participant.updated"]);
    assert_eq!(state.participant("p").unwrap().models, ["n", "n"], "what is no name is left out");
    assert!(state.set_models("p", linked.serial, new, 8).is_none(), "nothing new");
    assert_eq!(find(&state, "m", 8), Available::Nobody);
    assert_eq!(find(&state, "n", 8), known("n"));
    let many = (0..100).map(|number| number.to_string()).collect();
    state.set_models("p", linked.serial, many, 9);
    assert_eq!(state.participant("p").unwrap().models.len(), 64);
    state.set_models("p", linked.serial, Vec::new(), 9);
    assert_eq!(find(&state, "*", 9), Available::Empty, "there is nothing to ask it for");
    state.disconnect("p", linked.serial, 9);
    assert!(state.set_models("p", linked.serial, texts(&["m"]), 9).is_none(), "not its own");
}

#[test]
fn a_participant_with_as_many_jobs_as_it_takes_is_busy() {
    let mut state = state();
    stock(&mut state, "p", 0);
    let _linked = link(&mut state, "p", 1, 0);
    let job = |number: u128, provider: ProviderId| JobStarted {
        job: JobId::from_random(number),
        provider,
        model: "*".to_owned(),
        protocol: Protocol::ChatCompletions,
        message: None,
    };
    assert!(state.started(&job(1, provider(9))).is_none(), "nobody is behind it");
    assert_eq!(names(&[state.started(&job(1, provider(1))).unwrap()]), ["llm.request"]);
    assert_eq!(state.status("p"), Some(Status::Busy));
    assert_eq!(state.participant("p").unwrap().status, Status::Busy);
}

#[test]
fn joins_that_cannot_be_are_refused_with_the_fields_name() {
    let good = || join_request("p", Kind::Tunnel);
    let texts = |model: &str| vec![model.to_owned()];
    let bad = [
        ("id", JoinRequest { id: String::new(), ..good() }),
        ("id", JoinRequest { id: "x".repeat(129), ..good() }),
        ("id", JoinRequest { id: "a\u{1b}[2J".to_owned(), ..good() }),
        ("nickname", JoinRequest { nickname: "x".repeat(129), ..good() }),
        ("endpoint", JoinRequest { endpoint: "nonsense".to_owned(), ..good() }),
        ("model", JoinRequest { models: Vec::new(), ..good() }),
        ("model", JoinRequest { models: vec!["m".to_owned(); 65], ..good() }),
        ("model", JoinRequest { models: texts("*"), ..good() }),
        ("model", JoinRequest { models: texts("room:any"), ..good() }),
        ("model", JoinRequest { models: texts(&"x".repeat(257)), ..good() }),
        ("specs", JoinRequest { specs: specs(&"x".repeat(257)), ..good() }),
        ("config", JoinRequest { config: config_with("x".repeat(16 * 1024 + 1)), ..good() }),
    ];
    for (field, request) in bad {
        let error = join(&mut state(), request, HERE, 0).unwrap_err();
        assert!(matches!(error, RoomError::Invalid(_)), "{error}");
        assert!(error.to_string().contains(&format!("`{field}`")), "{field}: {error}");
    }
}

fn specs(gpu: &str) -> MachineSpecs {
    MachineSpecs { gpu: Some(gpu.to_owned()), ..MachineSpecs::default() }
}

fn config_with(instructions: String) -> RuntimeConfig {
    RuntimeConfig { instructions: Some(instructions), ..RuntimeConfig::default() }
}

#[test]
fn in_a_full_room_the_one_that_left_first_makes_room_and_none_that_is_connected() {
    let mut state = state();
    for number in 0..MAX_PARTICIPANTS {
        stock(&mut state, &format!("p{number}"), 100 + number as u64);
    }
    let linked = link(&mut state, "p0", 1, 100);
    let now = 200 + MAX_PARTICIPANTS as u64;
    let refused = join(&mut state, join_request("new", Kind::Tunnel), HERE, now);
    assert!(matches!(refused, Err(RoomError::TooMany(_))), "all were there a moment ago");
    let announcements = stock(&mut state, "new", now + OFFLINE);
    assert_eq!(names(&announcements), ["participant.left -", "participant.joined +"]);
    assert!(state.member("p1").is_none() && state.member("p0").is_some());
    assert_eq!((state.count(), ended(&linked)), (MAX_PARTICIPANTS, None));
    assert!(!join(&mut state, join_request("p9", Kind::Tunnel), HERE, now).unwrap().0, "it is in");
}

mod histories;
