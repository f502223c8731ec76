//! Entry into a room.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base::ClientAddress;
use protocol::room::plane::ChangeRoom;
use rooms::{Caller, EntryError, Form, Kind, Next, Rooms};

use crate::kit::{HERE, NOW, THERE, empty, join, locked, make, named, open};

fn refusal<T>(entered: Result<T, EntryError>) -> EntryError {
    match entered {
        Ok(_) => panic!("let in"),
        Err(error) => error,
    }
}

fn is_too_many<T>(entered: Result<T, EntryError>) -> bool {
    matches!(refusal(entered), EntryError::TooMany { .. })
}

async fn enter(rooms: &Rooms, code: &str, password: &str, from: IpAddr) -> Option<EntryError> {
    rooms.enter(code, Some(password), from).await.err()
}

#[tokio::test(start_paused = true)]
async fn a_room_is_found_by_either_code_however_it_is_typed() {
    let (_, rooms) = empty();
    let made = make(&rooms, named("  My room "));
    let (short, spoken) = (made.room.short_code(), made.room.spoken_code());
    assert_eq!((made.room.name(), short.len()), ("My room".to_owned(), 6));
    assert!(made.host_token.expose().starts_with("wh_"));
    let typed = [
        short.to_owned(),
        format!(" {} ", short.to_lowercase()),
        spoken.to_owned(),
        spoken.to_uppercase(),
        spoken.replace('-', " "),
    ];
    for code in typed {
        let found = rooms.find(&code, HERE).unwrap();
        assert_eq!(found.id(), made.room.id(), "{code}");
        let entered = rooms.enter(&code, None, HERE).await.unwrap();
        assert_eq!(entered.id(), made.room.id(), "{code}");
    }
    assert_eq!(rooms.get(made.room.id().as_str()).unwrap().short_code(), short);
    assert_eq!(rooms.of_scope(&made.room.scope()).unwrap().short_code(), short);
    assert!(rooms.of_scope(&base::Scope::server()).is_none());
}

#[tokio::test(start_paused = true)]
async fn ten_unknown_codes_within_a_minute_are_enough() {
    let (_, rooms) = empty();
    let (known, other) = (make(&rooms, named("a")).room, make(&rooms, named("b")).room);
    rooms.find(known.short_code(), HERE).unwrap();
    for _ in 0..10 {
        assert_eq!(refusal(rooms.find("no-such-room", HERE)), EntryError::Unknown);
    }
    let error = refusal(rooms.find("no-such-room", HERE));
    assert_eq!(error, EntryError::TooMany { retry_after: Duration::from_secs(60) });
    assert!(error.to_string().contains("60 s"), "{error}");
    assert!(is_too_many(rooms.find(other.short_code(), HERE)), "nor is there any telling by it");
    assert!(is_too_many(rooms.enter(other.spoken_code(), None, HERE).await));
    assert!(rooms.find(known.spoken_code(), HERE).is_ok(), "it was there before");
    assert!(rooms.find(other.short_code(), THERE).is_ok(), "another address");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(rooms.find(other.short_code(), HERE).is_ok());
}

#[tokio::test(start_paused = true)]
async fn wrong_codes_of_others_do_not_keep_out_the_holder_of_a_token() {
    let (_, rooms) = empty();
    let made = make(&rooms, named("a"));
    let session = join(&made.room, "p", Kind::Tunnel);
    let code = made.room.short_code();
    (0..200).for_each(|_| drop(rooms.find("no-such-room", HERE)));
    let shows = |token| rooms.find(code, Caller { from: HERE.into(), token });
    assert!(is_too_many(shows(None)) && is_too_many(shows(Some("wh_guess"))));
    assert!(shows(Some(made.host_token.expose())).is_ok());
    assert!(shows(Some(&session)).is_ok());
    let other = make(&rooms, named("b")).room;
    let host = Caller { from: HERE.into(), token: Some(made.host_token.expose()) };
    assert!(is_too_many(rooms.find(other.short_code(), host)), "of this room only");
    rooms.knows_code(&other, ClientAddress::new(HERE));
    assert!(rooms.find(other.short_code(), HERE).is_ok(), "it has made the room");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_no_password() {
    let (_, rooms) = empty();
    let made = make(&rooms, locked("swordfish"));
    let (code, host) = (made.room.short_code(), made.host_token.expose());
    (0..10).for_each(|_| drop(rooms.find("no-such-room", HERE)));
    let caller = Caller { from: HERE.into(), token: Some(host) };
    let wrong = refusal(rooms.enter(code, Some("shark"), caller).await);
    assert_eq!(wrong, EntryError::PasswordWrong);
    assert!(rooms.enter(code, Some("swordfish"), caller).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn wrong_passwords_are_counted_and_missing_ones_are_not() {
    let (_, rooms) = empty();
    let room = make(&rooms, locked("swordfish")).room;
    let code = room.short_code();
    assert!(room.has_password() && room.summary().room.password_protected);
    for missing in [None, Some("")].repeat(20) {
        let error = refusal(rooms.enter(code, missing, HERE).await);
        assert_eq!(error, EntryError::PasswordMissing);
    }
    assert!(rooms.find(code, HERE).is_ok(), "that it is there needs no password");
    for _ in 0..10 {
        assert_eq!(enter(&rooms, code, "guess", HERE).await, Some(EntryError::PasswordWrong));
    }
    let error = enter(&rooms, code, "swordfish", HERE).await;
    assert!(matches!(error, Some(EntryError::TooMany { .. })), "who guesses learns nothing");
    assert!(rooms.find(code, HERE).is_ok(), "it knows the code");
    assert_eq!(enter(&rooms, code, "swordfish", THERE).await, None);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(enter(&rooms, code, "swordfish", HERE).await, None);
    for _ in 0..10 {
        assert_eq!(enter(&rooms, code, "guess", HERE).await, Some(EntryError::PasswordWrong));
    }
    assert_eq!(enter(&rooms, code, "swordfish", HERE).await, None, "a member is not cut off");
}

#[tokio::test(start_paused = true)]
async fn an_open_room_takes_whatever_is_shown() {
    let (_, rooms) = empty();
    let room = make(&rooms, named("open")).room;
    assert_eq!(enter(&rooms, room.short_code(), "sk-dummy", HERE).await, None);
}

/// After a restart nobody has shown the password: it is verified, a few at a time, and then known.
#[tokio::test]
async fn many_joins_at_once_after_a_restart_all_succeed() {
    let (store, rooms) = empty();
    let code = make(&rooms, locked("swordfish")).room.short_code().to_owned();
    let rooms = open(&store, NOW);
    let enter = |password: &'static str, from| {
        let (rooms, code) = (rooms.clone(), code.clone());
        tokio::spawn(async move { enter(&rooms, &code, password, from).await })
    };
    let right: Vec<_> = (0..50).map(|_| enter("swordfish", HERE)).collect();
    for entered in right {
        assert_eq!(entered.await.unwrap(), None);
    }
}

#[tokio::test]
async fn guesses_made_at_once_after_a_restart_are_counted_too() {
    let (store, rooms) = empty();
    let code = make(&rooms, locked("swordfish")).room.short_code().to_owned();
    let rooms = open(&store, NOW);
    let guess = || {
        let (rooms, code) = (rooms.clone(), code.clone());
        tokio::spawn(async move { enter(&rooms, &code, "guess", HERE).await })
    };
    let guesses: Vec<_> = (0..50).map(|_| guess()).collect();
    let mut wrong = 0;
    for guess in guesses {
        wrong += usize::from(guess.await.unwrap() == Some(EntryError::PasswordWrong));
    }
    assert!((10..=13).contains(&wrong), "{wrong}: those at work when the tenth was wrong");
}

#[tokio::test(start_paused = true)]
async fn a_changed_password_is_asked_for_at_once() {
    let (store, rooms) = empty();
    let made = make(&rooms, locked("old"));
    let (room, host) = (Arc::clone(&made.room), made.host_token.expose());
    let code = room.short_code();
    assert_eq!(enter(&rooms, code, "old", HERE).await, None);
    let change =
        |password: &str| ChangeRoom { password: Some(password.to_owned()), ..Default::default() };
    assert!(room.change(change("new"), Some(host)).unwrap().room.password_protected);
    assert_eq!(enter(&rooms, code, "old", HERE).await, Some(EntryError::PasswordWrong));
    assert_eq!(enter(&rooms, code, "new", HERE).await, None);
    let restarted = open(&store, NOW);
    assert_eq!(enter(&restarted, code, "old", HERE).await, Some(EntryError::PasswordWrong));
    assert_eq!(enter(&restarted, code, "new", HERE).await, None);
    assert!(!room.change(change(""), Some(host)).unwrap().room.password_protected);
    assert!(rooms.enter(code, None, HERE).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_of_a_room_with_a_new_password_has_to_show_it() {
    let (_, rooms) = empty();
    let made = make(&rooms, named("open"));
    let (room, host) = (Arc::clone(&made.room), made.host_token.expose());
    let mut watcher = room.subscribe(Form::Named, None);
    let named = ChangeRoom { name: Some("friends".to_owned()), ..ChangeRoom::default() };
    room.change(named, Some(host)).unwrap();
    assert!(matches!(watcher.next().await, Next::Frames(_)));
    let locked = ChangeRoom { password: Some("new".to_owned()), ..ChangeRoom::default() };
    let waiting = tokio::spawn(async move { (watcher.next().await, watcher.next().await) });
    tokio::task::yield_now().await;
    room.change(locked, Some(host)).unwrap();
    let (first, second) = waiting.await.unwrap();
    assert!(first == Next::Closed || second == Next::Closed, "{first:?} {second:?}");
    let mut newer = room.subscribe(Form::Named, None);
    room.change(ChangeRoom::default(), Some(host)).unwrap();
    assert!(matches!(newer.next().await, Next::Frames(_)), "who comes anew stays");
}
