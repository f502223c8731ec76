//! A worker that joins a room over the relay protocol.

use std::time::Duration;

use backend::DemoConfig;
use http::StatusCode;
use protocol::{
    relay::{Register, RegisterAck, ServerMessage, WorkerMessage, WorkerParticipant},
    room::MachineSpecs,
};
use testkit::{FakeHub, within};
use wire::DialError;
use worker::{
    Event, GiveUpReason, JoinRoom, Lend, NetDialer, NotAWorker, Protocol, ServerTarget, Worker,
    WorkerConfig,
};

use crate::support::{Pipes, RunningWorker, ServerEnd, config, demo};

fn ann() -> JoinRoom {
    let specs = MachineSpecs { gpu: Some("RTX".to_owned()), ..MachineSpecs::default() };
    JoinRoom { specs, stay: true, ..JoinRoom::new("swift-eagle-42", "p1", "Ann") }
}

fn in_room(join: JoinRoom) -> WorkerConfig {
    let server = ServerTarget::new("http://server", Some("pw".into())).unwrap().in_room(join);
    WorkerConfig { servers: vec![server], ..config(vec![demo()]) }
}

async fn registration(server: &mut ServerEnd) -> Register {
    match server.message().await {
        WorkerMessage::Register(register) => register,
        other => panic!("{other:?}"),
    }
}

fn ack() -> RegisterAck {
    RegisterAck {
        worker_id: "w-1".to_owned(),
        models: vec!["demo".to_owned()],
        room: Some("ABC123".to_owned()),
        participant_id: Some("p1".to_owned()),
        session_token: Some("wp_1".to_owned()),
        ..RegisterAck::default()
    }
}

async fn join(server: &mut ServerEnd) -> WorkerParticipant {
    let participant = registration(server).await.participant.unwrap();
    server.say(&ServerMessage::RegisterAck(ack()));
    server.models().await;
    *participant
}

/// The next event that is about the room.
async fn room_event(worker: &mut RunningWorker) -> Event {
    loop {
        let event = worker.event().await;
        if matches!(event, Event::Joined { .. } | Event::GaveUp { .. }) {
            return event;
        }
    }
}

async fn gave_up(mut worker: RunningWorker) -> GiveUpReason {
    let reason = match room_event(&mut worker).await {
        Event::GaveUp { why, .. } => why,
        other => panic!("{other:?}"),
    };
    let ended = worker.ended().await;
    assert_eq!(ended.gave_up.as_ref(), Some(&reason));
    reason
}

fn refusal(status: StatusCode) -> DialError {
    DialError::Refused { status, body: "no".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_worker_identifies_itself_and_gets_the_room_and_its_token() {
    let (pipes, mut servers) = Pipes::new(true);
    let mut worker = RunningWorker::start(in_room(ann()), pipes);
    let participant = join(&mut servers.recv().await.unwrap()).await;
    assert_eq!((participant.id.as_str(), participant.nickname.as_str()), ("p1", "Ann"));
    assert_eq!(participant.specs.gpu.as_deref(), Some("RTX"));
    assert_eq!(participant.session_token, None);
    let joined = Event::Joined {
        server: "http://server".to_owned(),
        name: "w".to_owned(),
        room: "ABC123".to_owned(),
        participant_id: "p1".to_owned(),
        session_token: Some("wp_1".into()),
        tunnel: false,
    };
    assert_eq!(room_event(&mut worker).await, joined);
    assert!(!format!("{joined:?}").contains("wp_1"));
}

#[tokio::test(start_paused = true)]
async fn a_second_link_shows_the_token_of_the_first() {
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(in_room(ann()), pipes);
    let mut server = servers.recv().await.unwrap();
    join(&mut server).await;
    drop(server);
    let participant = join(&mut servers.recv().await.unwrap()).await;
    assert_eq!(participant.session_token.as_deref(), Some("wp_1"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_kept_is_shown_from_the_start() {
    let (pipes, mut servers) = Pipes::new(true);
    let kept = JoinRoom { session_token: Some("wp_0".into()), ..ann() };
    let _worker = RunningWorker::start(in_room(kept), pipes);
    let participant = join(&mut servers.recv().await.unwrap()).await;
    assert_eq!(participant.session_token.as_deref(), Some("wp_0"));
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_gone_and_a_wrong_password_end_it() {
    let cases = [
        (StatusCode::NOT_FOUND, GiveUpReason::NoRoom),
        (StatusCode::UNAUTHORIZED, GiveUpReason::Password),
    ];
    for (status, why) in cases {
        let (pipes, _servers) = Pipes::new(true);
        pipes.failures.lock().unwrap().push_back(refusal(status));
        assert_eq!(gave_up(RunningWorker::start(in_room(ann()), pipes)).await, why);
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_tries_are_tried_again_later() {
    let (pipes, mut servers) = Pipes::new(true);
    pipes.failures.lock().unwrap().push_back(refusal(StatusCode::TOO_MANY_REQUESTS));
    let _worker = RunningWorker::start(in_room(ann()), pipes);
    join(&mut servers.recv().await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_taken_ends_it_with_the_servers_words() {
    let (pipes, mut servers) = Pipes::new(true);
    let worker = RunningWorker::start(in_room(ann()), pipes);
    servers.recv().await.unwrap().close(1008, "the participant p1 is connected already");
    let why = gave_up(worker).await;
    assert_eq!(why, GiveUpReason::Refused("the participant p1 is connected already".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_removed_or_superseded_participant_does_not_come_back() {
    let cases = [
        (1008, "the participant was removed", GiveUpReason::Removed),
        (1000, "superseded by a newer tunnel", GiveUpReason::Superseded),
    ];
    for (code, reason, why) in cases {
        let (pipes, mut servers) = Pipes::new(true);
        let mut worker = RunningWorker::start(in_room(ann()), pipes);
        let mut server = servers.recv().await.unwrap();
        join(&mut server).await;
        assert!(matches!(room_event(&mut worker).await, Event::Joined { .. }));
        server.close(code, reason);
        assert_eq!(gave_up(worker).await, why);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_gets_its_participant_back() {
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(in_room(ann()), pipes);
    let mut server = servers.recv().await.unwrap();
    join(&mut server).await;
    server.close(1001, "the server is closing");
    join(&mut servers.recv().await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_rooms_is_not_lent_to() {
    let (pipes, mut servers) = Pipes::new(false);
    let worker = RunningWorker::start(in_room(ann()), pipes);
    let mut server = servers.recv().await.unwrap();
    registration(&mut server).await;
    server.say(&ServerMessage::RegisterAck(RegisterAck { room: None, ..ack() }));
    assert_eq!(gave_up(worker).await, GiveUpReason::NoRooms);
    server.closed().await;
}

#[test]
fn an_invalid_participant_is_reported_at_once() {
    let refused = |config: WorkerConfig| Worker::new(config, NetDialer).unwrap_err();
    let several = WorkerConfig { backends: vec![demo(), demo()], ..in_room(ann()) };
    assert_eq!(refused(several), NotAWorker::SeveralInRoom);
    let node = WorkerConfig { protocol: Protocol::Node, ..in_room(ann()) };
    assert_eq!(refused(node), NotAWorker::NodeInRoom);
    let nowhere = WorkerConfig { protocol: Protocol::Tunnel, ..config(vec![demo()]) };
    assert_eq!(refused(nowhere), NotAWorker::TunnelToNoRoom);
}

#[tokio::test]
async fn auto_takes_the_tunnel_where_the_server_is_no_warren() {
    let hub = FakeHub::start("ABC123").await;
    let join = JoinRoom::new("ABC123", "p1", "Ann");
    let server = ServerTarget::new(&hub.url(), None).unwrap().in_room(join);
    let demo = Lend::Demo(DemoConfig { tokens_per_second: 0, max_concurrent: 2 });
    let auto = WorkerConfig {
        servers: vec![server],
        protocol: Protocol::Auto,
        heartbeat: Duration::from_millis(50),
        ..config(vec![demo])
    };
    let worker = RunningWorker::start(auto, NetDialer);
    assert_eq!(hub.tunnel().await.participant, "p1");
    worker.shutdown.cancel();
    within("the worker's end", worker.ended()).await;
    assert_eq!(hub.has("ABC123", "p1"), None);
}

/// A web page comes from something in between, and says nothing of the room.
#[tokio::test(start_paused = true)]
async fn a_proxys_page_gives_no_room_up() {
    let (pipes, mut servers) = Pipes::new(true);
    let page =
        || DialError::Refused { status: StatusCode::NOT_FOUND, body: wire::dial::PAGE.to_owned() };
    pipes.failures.lock().unwrap().extend([page(), page()]);
    let _worker = RunningWorker::start(in_room(ann()), pipes);
    let participant = join(&mut servers.recv().await.unwrap()).await;
    assert_eq!(participant.id, "p1");
}
