//! State that outlives a restart, and rooms that end.

use std::{sync::Arc, time::Duration};

use protocol::room::{Status, plane::ChangeRoom};
use rooms::{JoinRequest, Kind, NewRoom, RoomError, participant::ConnectionEnd};
use store::RoomStore;

use crate::kit::{
    DAY, HERE, HOUR, MINUTE, NOW, THERE, empty, event_names, join, join_request, locked, make,
    named, open, provider, room, watch,
};

#[tokio::test(start_paused = true)]
async fn rooms_and_their_participants_are_there_again_after_a_restart() {
    let (store, rooms) = empty();
    let defaults = protocol::room::RuntimeConfig {
        instructions: Some("be brief".to_owned()),
        ..Default::default()
    };
    let defaults = Some(defaults);
    let owner = Some("k-1".into());
    let made = make(&rooms, NewRoom { public: true, owner, defaults, ..locked("swordfish") });
    let (before, host) = (made.room, made.host_token.expose().to_owned());
    let address = (HERE, 11434).into();
    let session = join(&before, "worker", Kind::Worker);
    join(&before, "called", Kind::Endpoint(address));
    join(&before, "stock", Kind::Tunnel);
    let _connection = before.connect("worker", provider(1), NOW).unwrap();

    let rooms = open(&store, NOW + HOUR);
    let after = rooms.enter(before.short_code(), Some("swordfish"), HERE).await.unwrap();
    assert_eq!(after.id(), before.id());
    assert_eq!(after.summary().room, before.summary().room);
    assert_eq!(after.owner().unwrap().as_str(), "k-1");
    assert_eq!(after.defaults(), before.defaults());
    assert!(after.is_host(Some(&host)) && rooms.find(before.spoken_code(), HERE).is_ok());
    let ids: Vec<_> = after.participants().into_iter().map(|own| (own.id, own.status)).collect();
    let offline = |id: &str| (id.to_owned(), Status::Offline);
    assert_eq!(ids, [offline("called"), offline("stock"), offline("worker")]);
    assert_eq!(after.served("called").unwrap().kind, Kind::Endpoint(address));
    assert_eq!(rooms.unserved_endpoints().len(), 1);

    let stranger = after.join(join_request("worker", Kind::Worker), HERE, NOW + HOUR);
    assert!(matches!(stranger, Err(RoomError::Conflict(_))), "its id is kept for it for 30 s");
    let own =
        JoinRequest { session: Some(session.clone()), ..join_request("worker", Kind::Worker) };
    let joined = after.join(own, THERE, NOW + HOUR).unwrap();
    assert_eq!((joined.created, joined.session.expose()), (false, session.as_str()));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_written_does_not_happen() {
    let (store, rooms) = empty();
    let made = make(&rooms, named("room"));
    let (room, host) = (made.room, made.host_token.expose().to_owned());
    join(&room, "p", Kind::Tunnel);
    store.fail_writes(true);
    let is_store = |error: RoomError| matches!(error, RoomError::Store(_));
    assert!(rooms.create(named("other"), NOW).err().is_some_and(is_store));
    assert_eq!(rooms.list().len(), 1);
    assert!(room.join(join_request("q", Kind::Tunnel), HERE, NOW).err().is_some_and(is_store));
    assert!(room.leave("p", None, HERE).err().is_some_and(is_store));
    let ids: Vec<_> = room.participants().into_iter().map(|own| own.id).collect();
    assert_eq!(ids, ["p"]);
    let change = ChangeRoom { name: Some("new".to_owned()), ..ChangeRoom::default() };
    assert!(room.change(change, Some(&host)).err().is_some_and(is_store));
    assert_eq!(room.name(), "room");
}

#[tokio::test(start_paused = true)]
async fn only_the_host_changes_a_room_and_only_to_valid_values() {
    let (store, rooms) = empty();
    let made = make(&rooms, named("room"));
    let (room, host) = (made.room, made.host_token.expose().to_owned());
    let mut watcher = watch(&room);
    let name = |name: &str| ChangeRoom { name: Some(name.to_owned()), ..ChangeRoom::default() };
    for shown in [None, Some(""), Some("guess")] {
        let refused = room.change(name("mine"), shown);
        assert!(matches!(refused, Err(RoomError::NotAllowed(_))), "{shown:?}");
    }
    for bad in ["", "  ", "a\u{7}b", &"x".repeat(129)] {
        assert!(matches!(room.change(name(bad), Some(&host)), Err(RoomError::Invalid(_))), "{bad}");
    }
    assert_eq!(event_names(&mut watcher).await, Vec::<String>::new());
    assert_eq!(room.change(name(" new "), Some(&host)).unwrap().room.name, "new");
    assert_eq!(event_names(&mut watcher).await, ["room.created"]);
    assert_eq!(open(&store, NOW).find(room.short_code(), HERE).unwrap().name(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_closed_room_is_gone_for_everybody() {
    let (store, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Tunnel);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    let mut watcher = watch(&room);
    rooms.close(room.id(), "its host closed it").unwrap();
    room.closed().await;
    assert_eq!(connection.ended().await, ConnectionEnd::RoomClosed);
    drop(connection);
    assert_eq!(event_names(&mut watcher).await, ["room.closed", "closed"]);
    assert!(rooms.find(room.short_code(), HERE).is_err() && rooms.list().is_empty());
    assert!(rooms.get(room.id().as_str()).is_none());
    assert!(
        store.load_rooms().unwrap().is_empty() && store.load_participants().unwrap().is_empty()
    );
    let late = room.join(join_request("q", Kind::Tunnel), HERE, NOW);
    assert!(late.err().unwrap().to_string().contains("closed"));
    assert!(room.connect("p", provider(2), NOW).is_err());
    rooms.close(room.id(), "again").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_room_whose_end_cannot_be_written_ends_and_comes_back_with_a_restart() {
    let (store, rooms) = empty();
    let room = room(&rooms);
    store.fail_writes(true);
    assert!(matches!(rooms.close(room.id(), "test"), Err(RoomError::Store(_))));
    room.closed().await;
    assert!(rooms.list().is_empty());
    store.fail_writes(false);
    assert_eq!(open(&store, NOW).list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_nobody_uses_ends() {
    let (store, rooms) = empty();
    let (quiet, used, lent) = (room(&rooms), room(&rooms), room(&rooms));
    let idle = Some(Duration::from_secs(60));
    let short = make(&rooms, NewRoom { idle, ..named("short") }).room;
    join(&lent, "p", Kind::Tunnel);
    let connection = lent.connect("p", provider(1), NOW).unwrap();
    assert_eq!(short.summary().room.expires_at, Some(NOW + MINUTE));
    let left = |now| {
        rooms.sweep(now, now);
        rooms.list().len()
    };
    assert_eq!(left(NOW + MINUTE - 1), 4);
    assert_eq!(left(NOW + MINUTE), 3, "the short one ended");
    used.find(&protocol::room::Selector::Any, NOW + HOUR);
    quiet.participants();
    assert_eq!(left(NOW + DAY), 2, "looking at a room is no use of it");
    assert_eq!(left(NOW + DAY + HOUR), 1);
    drop(connection);
    assert_eq!(left(NOW + 2 * DAY + HOUR - 1), 1, "it was used until its participant left");
    assert_eq!(left(NOW + 2 * DAY + HOUR), 0);
    assert!(store.load_rooms().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_a_room_was_used_is_written_and_a_server_that_was_off_gives_it_an_hour() {
    let (store, rooms) = empty();
    let room = room(&rooms);
    room.find(&protocol::room::Selector::Any, NOW + HOUR);
    store.fail_writes(true);
    rooms.sweep(NOW + HOUR, NOW + HOUR);
    store.fail_writes(false);
    rooms.sweep(NOW + HOUR, NOW + HOUR);
    assert_eq!(store.load_rooms().unwrap()[0].used, NOW + HOUR, "tried again");
    room.find(&protocol::room::Selector::Any, NOW + HOUR + 1);
    rooms.sweep(NOW + HOUR + 1, NOW + HOUR + 1);
    assert_eq!(store.load_rooms().unwrap()[0].used, NOW + HOUR, "not more often than needed");
    let later = NOW + 9 * DAY;
    let rooms = open(&store, later);
    rooms.sweep(later + HOUR - 1, later + HOUR - 1);
    assert_eq!(rooms.list().len(), 1);
    rooms.sweep(later + HOUR, later + HOUR);
    assert!(rooms.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_is_gone_for_a_day_is_forgotten_but_not_at_a_restart() {
    let (store, rooms) = empty();
    let room =
        make(&rooms, NewRoom { idle: Some(Duration::from_secs(9_999_999)), ..named("room") });
    join(&room.room, "p", Kind::Worker);
    let later = NOW + 9 * DAY;
    let restarted = open(&store, later);
    restarted.sweep(later, later);
    assert_eq!(store.load_participants().unwrap().len(), 1);
    restarted.sweep(later + HOUR, later + HOUR);
    assert!(store.load_participants().unwrap().is_empty());
    rooms.sweep(NOW + DAY, NOW + DAY);
    assert!(room.room.participants().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_ends_no_room_and_forgets_no_participant() {
    let (_, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Tunnel);
    let jumped = NOW + 400 * DAY;
    assert!(rooms.sweep(jumped, NOW + MINUTE).is_empty());
    assert!(room.participant("p").is_some());
    assert_eq!(rooms.sweep(jumped, jumped).len(), 1, "once the time is believed");
}

#[tokio::test(start_paused = true)]
async fn models_that_changed_are_written_once_the_connection_is_gone() {
    let (store, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Worker);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    connection.models(vec!["new".to_owned()], NOW);
    drop(connection);
    store.fail_writes(true);
    rooms.sweep(NOW, NOW);
    store.fail_writes(false);
    rooms.sweep(NOW, NOW);
    let restarted = open(&store, NOW).find(room.short_code(), HERE).unwrap();
    assert_eq!(restarted.participant("p").unwrap().models, ["new"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_row_costs_only_its_participant() {
    let (store, rooms) = empty();
    let room = room(&rooms);
    join(&room, "p", Kind::Tunnel);
    let mut damaged = store.load_participants().unwrap().remove(0);
    damaged.id = "q".into();
    damaged.json = "{".to_owned();
    store.save_participant(&damaged).unwrap();
    let restarted = open(&store, NOW).find(room.short_code(), HERE).unwrap();
    assert_eq!(restarted.participants().len(), 1);
    let _: Arc<_> = restarted;
}

#[test]
fn rooms_made_in_one_millisecond_are_listed_in_the_order_of_their_making() {
    let (store, rooms) = empty();
    let made: Vec<_> = (0..20).map(|_| room(&rooms).id().clone()).collect();
    let ids = |rooms: &rooms::Rooms| -> Vec<_> {
        rooms.list().iter().map(|room| room.id().clone()).collect()
    };
    assert_eq!(ids(&rooms), made);
    let restarted = open(&store, NOW + 1);
    assert_eq!(ids(&restarted), made, "after a restart");
    let next = restarted.create(named("next"), NOW + 1).unwrap();
    assert_eq!(
        restarted.list().last().unwrap().id(),
        next.room.id(),
        "the clock has not caught up yet"
    );
}

#[test]
fn a_clock_that_was_set_back_makes_no_rooms_of_the_future() {
    let (_, rooms) = empty();
    room(&rooms);
    let made = rooms.create(named("earlier"), NOW - DAY).unwrap();
    assert_eq!(made.room.summary().room.created_at, NOW - DAY);
}
