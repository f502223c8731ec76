//! Rooms of several servers that act as one and share a store.

use std::{sync::Arc, time::Duration};

use base::ClientAddress;
use protocol::room::plane::ChangeRoom;
use rooms::{
    Caller, EntryError, Form, Kind, NewRoom, Next, Place, Room, RoomError, Rooms, Settings,
    participant::ConnectionEnd,
};
use store::{Changes, RoomHome, RoomStore, VolatileStore};

use crate::kit::{
    HERE, HOUR, NOW, THERE, event_names, join, join_request, locked, make, named, provider,
};

fn server(store: &Arc<VolatileStore>, name: &str) -> Rooms {
    let settings = Settings { idle: Duration::from_secs(24 * 3_600) };
    let own = RoomHome { server: name.to_owned(), start: "1f".to_owned() };
    let rooms = Rooms::open_in_fleet(Arc::<_>::clone(store) as _, settings, NOW);
    rooms.set_own(own);
    news(store, &rooms);
    rooms
}

/// Takes over what the store has. Returns how many rooms were closed elsewhere.
fn news(store: &VolatileStore, rooms: &Rooms) -> usize {
    let records = store.load_rooms().unwrap();
    rooms.take_over(Changes { whole: true, records }, NOW).len()
}

fn two() -> (Arc<VolatileStore>, Rooms, Rooms) {
    let store = Arc::<VolatileStore>::default();
    let (one, other) = (server(&store, "one"), server(&store, "other"));
    (store, one, other)
}

/// The home of a room, as a server sees it.
fn home(rooms: &Rooms, code: &str) -> Option<String> {
    match rooms.place(code) {
        Place::Here(_) => Some("here".to_owned()),
        Place::There(room) => Some(room.home().server.clone()),
        Place::Unknown => None,
    }
}

fn here(rooms: &Rooms, room: &Room) -> Arc<Room> {
    rooms.get(room.id().as_str()).unwrap()
}

/// The id of the last event.
fn last_id(room: &Room) -> u64 {
    room.subscribe(Form::Messages, None).last_id()
}

#[tokio::test(start_paused = true)]
async fn a_room_is_at_the_server_that_made_it_and_the_others_know_of_it() {
    let (store, one, other) = two();
    let room = make(&one, NewRoom { public: true, ..locked("swordfish") }).room;
    assert_eq!(home(&other, room.short_code()), None, "nobody has told yet");
    let from = ClientAddress::new(THERE);
    let typed = room.short_code().to_lowercase();
    let find = async |name: &str| other.find_elsewhere(name, from).await.unwrap();
    let found = tokio::join!(find(&typed), find(&typed), find(room.id().as_str()), find("nothing"));
    assert!(found.0.is_some() && found.1.is_some() && found.2.is_some() && found.3.is_none());
    assert!(one.find_elsewhere(&typed, from).await.unwrap().is_none(), "it is here");
    for name in [room.short_code(), room.spoken_code(), room.id().as_str()] {
        assert_eq!(home(&other, name).unwrap(), "one", "{name}");
        assert_eq!(home(&one, name).unwrap(), "here", "{name}");
    }
    join(&room, "p", Kind::Tunnel);
    other.refresh_uses();
    let shown = other.list_elsewhere();
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].summary(), shown[0].info()), (room.summary(), room.info()));
    assert!(one.list_elsewhere().is_empty() && other.list().is_empty());
    assert_eq!(news(&store, &other), 0);
    assert_eq!(last_id(&room) >> 40, 1, "the first epoch");
}

#[tokio::test(start_paused = true)]
async fn a_password_is_verified_for_a_room_elsewhere() {
    let (store, one, other) = two();
    make(&one, locked("swordfish"));
    news(&store, &other);
    let known = other.list_elsewhere().remove(0);
    assert_eq!(other.verify_elsewhere(&known, Some("swordfish")).await, Ok(()));
    assert_eq!(other.verify_elsewhere(&known, Some("x")).await, Err(EntryError::PasswordWrong));
    assert_eq!(other.verify_elsewhere(&known, None).await, Err(EntryError::PasswordMissing));
}

#[tokio::test(start_paused = true)]
async fn codes_of_rooms_elsewhere_are_not_guessed_here_and_members_get_through() {
    let (store, one, other) = two();
    let made = make(&one, named("room"));
    let session = join(&made.room, "p", Kind::Tunnel);
    news(&store, &other);
    let known = other.list_elsewhere().remove(0);
    let caller = |from, token| Caller { from: ClientAddress::new(from), token };
    assert_eq!(other.may_pass(&known, caller(THERE, None)).await, Ok(()));
    for at in [HERE, THERE] {
        for _ in 0..10 {
            assert_eq!(other.find("nobody-knows-11", at).err(), Some(EntryError::Unknown));
        }
    }
    let refused = other.may_pass(&known, caller(HERE, None)).await;
    assert!(matches!(refused, Err(EntryError::TooMany { .. })), "it might have guessed the code");
    let unheard = make(&one, named("unheard")).room;
    let found = other.find_elsewhere(unheard.short_code(), ClientAddress::new(HERE)).await;
    assert!(found.unwrap().is_none(), "nothing is looked for any more");
    let wrong = other.may_pass(&known, caller(HERE, Some("wp_0"))).await;
    assert!(wrong.is_err(), "any token will not do");
    for token in [session.as_str(), made.host_token.expose()] {
        let address = "10.9.9.9".parse().unwrap();
        (0..10).for_each(|_| drop(other.find("nobody-knows-11", address)));
        assert_eq!(other.may_pass(&known, caller(address, Some(token))).await, Ok(()));
    }
    assert_eq!(other.may_pass(&known, caller(THERE, None)).await, Ok(()), "it knew the room");
}

#[tokio::test(start_paused = true)]
async fn a_room_whose_home_is_gone_gets_another_one_and_a_new_epoch() {
    let (store, one, other) = two();
    let made = make(&one, locked("swordfish"));
    let (before, host) = (made.room, made.host_token.expose().to_owned());
    let session = join(&before, "p", Kind::Worker);
    let seen = last_id(&before);
    news(&store, &other);
    let known = other.homes();
    assert_eq!((&known[0].0, &*known[0].1.server, known[0].2), (before.id(), "one", 1));
    assert!(other.adopt(before.id(), 1, NOW + 5_000).unwrap());
    assert!(!other.adopt(before.id(), 1, NOW).unwrap(), "it is here");
    assert!(!server(&store, "third").adopt(before.id(), 1, NOW).unwrap(), "it was too late");
    assert_eq!((other.homes().len(), &*other.homes()[0].1.server), (1, "other"));

    let after = here(&other, &before);
    assert!(other.enter(before.short_code(), Some("swordfish"), THERE).await.is_ok());
    assert!(after.is_host(Some(&host)) && after.participants().len() == 1);
    assert_eq!(last_id(&after) >> 40, 2);
    let mut resumed = after.subscribe(Form::Messages, Some(seen));
    let Next::Frames(first) = resumed.next().await else { panic!("it has ended") };
    assert!(first.starts_with(b": some events were missed"), "{first:?}");
    let own = join_request("p", Kind::Worker);
    let own = rooms::JoinRequest { session: Some(session.clone()), ..own };
    assert_eq!(after.join(own, THERE, NOW).unwrap().session.expose(), session);
    assert_eq!(home(&server(&store, "one"), before.short_code()).unwrap(), "other", "it stays");
}

#[tokio::test(start_paused = true)]
async fn a_home_that_starts_again_has_its_rooms_in_a_new_epoch() {
    let (store, one, other) = two();
    let room = make(&one, named("room")).room;
    drop(one);
    let restarted = server(&store, "one");
    assert_eq!(last_id(&here(&restarted, &room)) >> 40, 2);
    news(&store, &other);
    let later = server(&store, "one");
    assert_eq!(last_id(&here(&later, &room)) >> 40, 3);
    assert_eq!(news(&store, &later) + news(&store, &later), 0);
    assert_eq!(last_id(&here(&later, &room)) >> 40, 3, "its own news change nothing");
    assert_eq!(home(&other, room.short_code()).unwrap(), "one");
}

#[tokio::test(start_paused = true)]
async fn a_former_home_goes_on_until_it_reaches_the_new_one() {
    let (store, one, other) = two();
    let made = make(&one, named("room"));
    let (room, host) = (made.room, made.host_token.expose().to_owned());
    join(&room, "p", Kind::Tunnel);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    let mut watcher = room.subscribe(Form::Named, None);
    news(&store, &other);
    assert!(other.adopt(room.id(), 1, NOW).unwrap());
    assert!(one.give_way(room.id()).is_none(), "it has not heard of it");
    news(&store, &one);
    assert_eq!((&*one.homes()[0].1.server, one.homes()[0].2), ("other", 2));
    assert_eq!(home(&one, room.short_code()).unwrap(), "here");
    let change = ChangeRoom { name: Some("mine".to_owned()), ..ChangeRoom::default() };
    assert!(matches!(room.change(change, Some(&host)), Err(RoomError::Moved)));

    assert_eq!(one.give_way(room.id()), Some(room.scope()));
    assert!(one.give_way(room.id()).is_none() && other.give_way(room.id()).is_none());
    assert_eq!(connection.ended().await, ConnectionEnd::Moved);
    drop(connection);
    assert_eq!(
        event_names(&mut watcher).await,
        ["closed"],
        "it was not closed: watchers come back"
    );
    assert_eq!(home(&one, room.short_code()).unwrap(), "other");
    let late = room.join(join_request("q", Kind::Tunnel), HERE, NOW);
    assert!(matches!(late, Err(RoomError::Moved)));
    assert_eq!(store.load_rooms().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_room_that_is_closed_anywhere_ends_everywhere() {
    let (store, one, other) = two();
    let room = make(&one, named("room")).room;
    join(&room, "p", Kind::Tunnel);
    let connection = room.connect("p", provider(1), NOW).unwrap();
    let mut watcher = room.subscribe(Form::Named, None);
    news(&store, &other);
    store.forget_room(room.id()).unwrap();
    assert_eq!((news(&store, &one), news(&store, &other)), (1, 0));
    assert_eq!(connection.ended().await, ConnectionEnd::RoomClosed);
    drop(connection);
    assert_eq!(event_names(&mut watcher).await, ["room.closed", "closed"]);
    assert!(home(&one, room.short_code()).is_none() && home(&other, room.short_code()).is_none());
    let unheard = make(&one, named("made meanwhile")).room;
    let before_it = Changes { whole: true, records: Vec::new() };
    assert!(one.take_over(before_it, NOW).is_empty(), "the list is older than the room");
    assert_eq!(home(&one, unheard.short_code()).unwrap(), "here");
}

#[tokio::test(start_paused = true)]
async fn a_former_home_does_not_end_a_room_that_it_has_not_used() {
    let (store, one, other) = two();
    let room = make(&one, NewRoom { idle: Some(Duration::from_secs(60)), ..named("room") }).room;
    news(&store, &other);
    assert!(other.adopt(room.id(), 1, NOW).unwrap());
    assert_eq!(one.sweep(NOW + HOUR, NOW + HOUR), [room.scope()]);
    assert_eq!(home(&one, room.short_code()).unwrap(), "other");
    assert_eq!(store.load_rooms().unwrap().len(), 1);
}
