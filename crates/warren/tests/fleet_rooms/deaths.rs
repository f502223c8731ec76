//! Servers of rooms that die, hang, and lose each other.

use std::time::Duration;

use serde_json::json;
use testkit::{
    DEADLINE, Daemon, FakeParticipant, MockBackend, Put, Room, RoomEvents, Streaming, TunnelAsk,
    eventually, nats::NatsServer, postgres::PostgresServer,
};

use crate::kit::{
    ask, asks, epoch_of, has, knows, nats, servers, servers_with, tunnel, watch, watch_after,
    worker,
};

/// Waits until a room is in this epoch, as this server has it, and watches it after this event.
async fn comes_back(room: &Room, daemon: &Daemon, after: Option<u64>, epoch: u64) -> RoomEvents {
    let watching = async {
        loop {
            if let Some(mut watch) = watch_after(room, daemon, after).await
                && watch.next().await.is_some_and(|connected| epoch_of(&connected) == epoch)
            {
                return watch;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(DEADLINE, watching).await.expect("the room")
}

/// Checks that a stream that resumes in a later epoch begins with a word of that.
async fn says_that_something_was_missed(watch: &mut RoomEvents) {
    let comment = watch.next().await.unwrap();
    assert_eq!((comment.id, comment.name), (None, None));
}

#[tokio::test]
async fn a_room_whose_home_is_killed_goes_on_elsewhere_and_stays_there() {
    let [mut a, b, c] = servers(&nats("death"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let backend = MockBackend::start(&["m"]).await;
    let _lender = worker(&room, &b, "lent", &backend);
    has(&room, &c, "lent").await;
    let mut watch = watch(&room, &c).await;
    assert_eq!(asks(&room, &c.client(), "*").await.status, 200);
    let last = watch.until("llm.complete").await.pop().unwrap();
    assert_eq!(epoch_of(&last), 1);

    a.kill9().await;
    while watch.next().await.is_some() {}
    let away = asks(&room, &b.client(), "*").await;
    assert!(matches!(away.status, 200 | 503), "{}", away.text());
    let mut watch = comes_back(&room, &c, last.id, 2).await;
    says_that_something_was_missed(&mut watch).await;
    has(&room, &b, "lent").await;
    for daemon in [&b, &c] {
        let answer = asks(&room, &daemon.client(), "*").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    a.start_again().await;
    knows(&a, 2).await;
    // Its first home does not take it back.
    comes_back(&room, &a, None, 2).await;
    assert_eq!(asks(&room, &a.client(), "*").await.status, 200);
}

/// A stream that has begun at this server, and the participant that answers it.
async fn begun(room: &Room, lends_at: &Daemon, asks_at: &Daemon) -> Begun {
    let mut participant = tunnel(room, lends_at, "p1").await;
    let path = room.chat();
    let asking = asks_at.client().post(&path, &ask("*", true)).open().await;
    let asked = participant.expect_request().await;
    participant.start(&asked, 200, "text/event-stream").await;
    participant.chunk(&asked, "data: {\"one\":1}\n\n").await;
    let mut stream = asking.answer().await;
    stream.expect("data: {\"one\":1}\n\n").await;
    Begun { participant, asked, stream }
}

struct Begun {
    participant: FakeParticipant,
    asked: TunnelAsk,
    stream: Streaming,
}

#[tokio::test]
async fn a_stream_whose_home_is_killed_ends_with_the_error_event_of_its_api() {
    let [mut a, b, c] = servers(&nats("cut"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let begun = begun(&room, &b, &c).await;
    a.kill9().await;
    let rest = begun.stream.finish().await.text();
    assert!(rest.contains("\"error\"") && rest.contains("was lost"), "{rest}");
}

#[tokio::test]
async fn a_home_that_stops_ends_what_has_begun_and_another_takes_over() {
    let [mut a, b, c] = servers(&nats("stop"), ["a", "b", "c"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let Begun { mut participant, asked, stream } = begun(&room, &b, &c).await;
    a.sigterm();
    a.line_with("stopping: what is in flight may finish").await;
    participant.chunk(&asked, "data: [DONE]\n\n").await;
    participant.end(&asked).await;
    assert_eq!(stream.finish().await.text(), "data: [DONE]\n\n");
    assert_eq!(a.exit().await, Some(0));
    comes_back(&room, &c, None, 2).await;
    let mut again = tunnel(&room, &c, "p1").await;
    let asking = {
        let (client, path) = (b.client(), room.chat());
        tokio::spawn(async move { client.post_json(&path, &ask("*", false)).await })
    };
    let asked = again.expect_request().await;
    again.answer(&asked, 200, &json!({"answer": 42})).await;
    assert_eq!(asking.await.unwrap().json(), json!({"answer": 42}));
}

#[tokio::test]
async fn a_room_whose_home_hangs_goes_on_elsewhere() {
    let [a, b] = servers(&nats("hung"), ["a", "b"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let mut at_home = watch(&room, &a).await;
    let first = at_home.next().await.unwrap();
    a.sigstop();
    let mut watch = comes_back(&room, &b, first.id, 2).await;
    says_that_something_was_missed(&mut watch).await;
    a.sigcont();
    // It gives way: its own watchers come back, and find the room at its new home.
    while at_home.next().await.is_some() {}
    comes_back(&room, &a, None, 2).await;
}

#[tokio::test]
async fn without_nats_a_home_goes_on_for_its_own_and_others_say_that_it_is_away() {
    let mut meeting = NatsServer::start();
    let [a, b] = servers(&meeting.url("alone"), ["a", "b"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    assert_eq!(b.client().get(&room.plane("")).await.status, 200);
    let backend = MockBackend::start(&["m"]).await;
    let _lender = worker(&room, &a, "lent", &backend);
    has(&room, &a, "lent").await;
    let mut at_home = watch(&room, &a).await;
    meeting.kill();
    let away = async || b.client().get(&room.plane("")).await.status == 503;
    eventually("the loss", DEADLINE, away).await;
    let told = b.client().get(&room.plane("")).await;
    assert!(told.text().contains("The server a") && told.header("retry-after").is_some());
    assert_eq!(asks(&room, &a.client(), "*").await.status, 200);
    at_home.until("llm.complete").await;

    meeting.run();
    comes_back(&room, &b, None, 1).await;
    assert_eq!(asks(&room, &b.client(), "*").await.status, 200);
    let complete = at_home.until("llm.complete").await.pop().unwrap();
    assert_eq!(epoch_of(&complete), 1, "nobody has taken it over");
}

#[tokio::test]
async fn a_home_that_starts_again_begins_an_epoch_of_its_own_rooms() {
    let [mut a] = servers(&nats("again"), ["a"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let first = watch(&room, &a).await.next().await.unwrap();
    a.kill_and_restart().await;
    let mut watch = comes_back(&room, &a, first.id, 2).await;
    says_that_something_was_missed(&mut watch).await;
}

#[tokio::test]
async fn when_nats_hangs_all_fall_silent_and_nobody_takes_over_a_room() {
    let meeting = NatsServer::start();
    let [a, b] = servers(&meeting.url("hang"), ["a", "b"]).await;
    let rooms = [
        Room::make(&a.client(), &json!({"name": "of a"})).await,
        Room::make(&b.client(), &json!({"name": "of b"})).await,
    ];
    meeting.freeze();
    for daemon in [&a, &b] {
        let alone = async || {
            let metrics = daemon.metrics().await;
            metrics.contains("warren_fleet_servers 1\n")
                && metrics.contains("warren_fleet_connected 0\n")
        };
        eventually("the silence", DEADLINE, alone).await;
    }
    meeting.thaw();
    for (room, daemon) in rooms.iter().zip([&b, &a]) {
        comes_back(room, daemon, None, 1).await;
    }
}

#[tokio::test]
async fn a_room_goes_on_while_the_database_is_away_and_is_joined_again_when_it_is_back() {
    let mut postgres = PostgresServer::start();
    let [a, b] = servers_with(&postgres.database(), &nats("base"), ["a", "b"]).await;
    let room = Room::make(&a.client(), &json!({"name": "friends"})).await;
    let backend = MockBackend::start(&["m"]).await;
    let _lender = worker(&room, &b, "lent", &backend);
    has(&room, &b, "lent").await;
    postgres.kill();
    assert_eq!(asks(&room, &b.client(), "*").await.status, 200);
    let put = Put::new(b.address(), &room.code).id("p1");
    let refused = put.put().await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    let unknown = b.client().get("/v1/rooms/nobody-knows-11").await;
    assert_eq!(unknown.status, 503, "it may be there: {}", unknown.text());
    postgres.run();
    let joined = async || put.put().await.status == 201;
    eventually("the join", DEADLINE, joined).await;
    assert_eq!(asks(&room, &b.client(), "*").await.status, 200);
}
