//! Servers of rooms that die, hang, and lose each other.

use serde_json::json;
use testkit::{DEADLINE, Daemon, MockBackend, eventually, nats::NatsServer};

use crate::kit::{Event, Room, Watch, knows, nats, servers};

/// Waits until a room is served through this server, and watches it after this event.
async fn comes_back(room: &Room, daemon: &Daemon, after: Option<u64>) -> Watch {
    let so = async || daemon.client().get(&room.plane("")).await.status == 200;
    eventually("the room", DEADLINE, so).await;
    room.watch_after(daemon, after).await
}

/// The first events of a stream that resumes in a later epoch.
async fn resumed(mut watch: Watch) -> Event {
    let connected = watch.next().await.unwrap();
    assert_eq!(connected.name.as_deref(), Some("connected"));
    let missed = watch.next().await.unwrap();
    assert_eq!(missed, Event { id: None, name: None }, "a comment says that something was missed");
    connected
}

#[tokio::test]
async fn a_room_whose_home_is_killed_goes_on_elsewhere_and_stays_there() {
    let [mut a, b, c] = servers(&nats("death"), ["a", "b", "c"]).await;
    let room = Room::make(&a, json!({"name": "friends"})).await;
    let backend = MockBackend::start(&["m"]).await;
    let _lender = room.worker(&b, "lent", &backend);
    room.has(&c, "lent").await;
    let mut watch = room.watch(&c).await;
    assert_eq!(room.ask(&c.client(), "*").await.status, 200);
    let last = watch.until("llm.complete").await.pop().unwrap();
    assert_eq!(last.epoch(), 1);

    a.kill9().await;
    while watch.next().await.is_some() {}
    let away = room.ask(&b.client(), "*").await;
    assert!(matches!(away.status, 200 | 503), "{}", away.text());
    let watch = comes_back(&room, &c, last.id).await;
    assert_eq!(resumed(watch).await.epoch(), 2, "a new epoch, and no wrong resume");
    room.has(&b, "lent").await;
    for daemon in [&b, &c] {
        let answer = room.ask(&daemon.client(), "*").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    a.start_again().await;
    knows(&a, 2).await;
    let mut watch = comes_back(&room, &a, None).await;
    assert_eq!(watch.next().await.unwrap().epoch(), 2, "its first home does not take it back");
    assert_eq!(room.ask(&a.client(), "*").await.status, 200);
}

#[tokio::test]
async fn a_home_that_hung_gives_way_when_it_goes_on() {
    let [a, b] = servers(&nats("hung"), ["a", "b"]).await;
    let room = Room::make(&a, json!({"name": "friends"})).await;
    let mut at_home = room.watch(&a).await;
    let first = at_home.next().await.unwrap();
    a.sigstop();
    let watch = comes_back(&room, &b, first.id).await;
    assert_eq!(resumed(watch).await.epoch(), 2);
    a.sigcont();
    while at_home.next().await.is_some() {}
    let mut watch = comes_back(&room, &a, None).await;
    assert_eq!(watch.next().await.unwrap().epoch(), 2, "by way of the new home");
}

#[tokio::test]
async fn without_nats_a_home_goes_on_for_its_own_and_others_say_that_it_is_away() {
    let mut meeting = NatsServer::start();
    let [a, b] = servers(&meeting.url("alone"), ["a", "b"]).await;
    let room = Room::make(&a, json!({"name": "friends"})).await;
    assert_eq!(b.client().get(&room.plane("")).await.status, 200);
    let backend = MockBackend::start(&["m"]).await;
    let _lender = room.worker(&a, "lent", &backend);
    room.has(&a, "lent").await;
    let mut at_home = room.watch(&a).await;
    meeting.kill();
    let away = async || b.client().get(&room.plane("")).await.status == 503;
    eventually("the loss", DEADLINE, away).await;
    let told = b.client().get(&room.plane("")).await;
    assert!(told.text().contains("The server a") && told.header("retry-after").is_some());
    assert_eq!(room.ask(&a.client(), "*").await.status, 200);
    at_home.until("llm.complete").await;

    meeting.run();
    comes_back(&room, &b, None).await;
    assert_eq!(room.ask(&b.client(), "*").await.status, 200);
    let complete = at_home.until("llm.complete").await.pop().unwrap();
    assert_eq!(complete.epoch(), 1, "nobody has taken it over");
}

#[tokio::test]
async fn a_home_that_starts_again_begins_an_epoch_of_its_own_rooms() {
    let [mut a] = servers(&nats("again"), ["a"]).await;
    let room = Room::make(&a, json!({"name": "friends"})).await;
    let first = room.watch(&a).await.next().await.unwrap();
    a.kill_and_restart().await;
    let watch = room.watch_after(&a, first.id).await;
    assert_eq!(resumed(watch).await.epoch(), 2);
}
