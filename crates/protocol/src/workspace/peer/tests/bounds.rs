//! The most that other members may make this one keep, to the last byte of it.

use serde_json::{Value, json};

use super::{ID, error, info, session};
use crate::workspace::{
    Problem,
    limits::{NAME_MAX, OBJECT_DEPTH_MAX, OBJECT_MAX, OBJECTS_MAX, SNAPSHOT_MAX, VISITED_MAX},
    peer::{
        BadObject, FromPeer, PeerMessage as M, ProjectObject, SessionObject, State, StateSnapshot,
        decode_peer,
    },
};

fn state(text: &str) -> State {
    match decode_peer(text) {
        Ok(FromPeer::Message(M::StateSnapshot(snapshot))) => snapshot.state,
        other => panic!("{other:?}"),
    }
}

/// A session of this length, with an owner or without.
fn session_of(length: usize, owner: Option<&str>) -> String {
    let text = |pad: usize| json!({"id": ID, "node_id": owner, "x": "x".repeat(pad)}).to_string();
    text(length - text(0).len())
}

#[test]
fn an_object_has_a_length() {
    let owned = session_of(OBJECT_MAX, Some("n"));
    assert_eq!(owned.len(), OBJECT_MAX);
    assert!(SessionObject::from_text(&owned, 0).is_ok());
    let longer = session_of(OBJECT_MAX + 1, Some("n"));
    assert_eq!(SessionObject::from_text(&longer, 0), Err(BadObject::TooLong));
    assert_eq!(ProjectObject::from_text(&longer), Err(BadObject::TooLong));
    let words = error(&json!({"type": "session_update",
        "session": {"info": serde_json::from_str::<Value>(&longer).unwrap()}}));
    assert_eq!(words, "`session_update`: field `session`: an object of more than 196608 bytes");
}

#[test]
fn an_object_without_an_owner_has_room_for_one() {
    let room = 2 * NAME_MAX + 16;
    let longest = session_of(OBJECT_MAX - room, None);
    let owner = "\"".repeat(NAME_MAX);
    let owned = SessionObject::from_text(&longest, 0).unwrap().owned_by(&owner);
    assert_eq!(owned.info().node_id.as_deref(), Some(&*owner));
    assert!(owned.text.as_str().len() <= OBJECT_MAX);
    assert_eq!(SessionObject::from_text(owned.text.as_str(), 0), Ok(owned));
    let longer = session_of(OBJECT_MAX - room + 1, None);
    assert_eq!(SessionObject::from_text(&longer, 0), Err(BadObject::TooLong));
}

#[test]
fn output_in_an_update_is_skipped_however_long() {
    let history = json!(["x".repeat(4 * OBJECT_MAX)]);
    let wrapped = session(&json!({"info": info(), "output_history": history}));
    let mut bare = info();
    bare["output_history"] = history;
    assert_eq!(session(&bare), wrapped);
    assert!(wrapped.text.as_str().len() < 1000);
}

#[test]
fn an_object_has_a_depth() {
    let nested = |depth: usize| {
        let lists = depth - 1;
        format!(r#"{{"id":"{ID}","x":{}"]"{}}}"#, "[".repeat(lists), "]".repeat(lists))
    };
    assert!(SessionObject::from_text(&nested(OBJECT_DEPTH_MAX), 0).is_ok());
    let deeper = SessionObject::from_text(&nested(OBJECT_DEPTH_MAX + 1), 0);
    assert_eq!(deeper, Err(BadObject::TooDeep));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for field in ["term", "state", "x"] {
        let text = format!(r#"{{"type":"state_snapshot","{field}":{deep}}}"#);
        let read = decode_peer(&text);
        assert!(field == "state" || read.is_ok(), "{field}");
    }
    let text = format!(
        r#"{{"type":"state_snapshot","state":{{"x":{deep},"sessions":{{"{ID}":{deep},"y":1}}}}}}"#
    );
    assert_eq!(state(&text).skipped, 2);
}

#[test]
fn a_snapshot_has_a_number_of_objects() {
    let tombstones = (0..OBJECTS_MAX as u128 - 1).map(|at| json!(uuid::Uuid::from_u128(at)));
    let tombstones: Vec<Value> = tombstones.collect();
    let text = json!({"type": "state_snapshot", "state": {"tombstones": tombstones,
        "z": [ID], "projects": {ID: {}, "660f9500-f30c-42e5-b827-557766551111": {}}}});
    let state = state(&text.to_string());
    let read = state.tombstones.len() + state.projects.len();
    assert_eq!((read, state.skipped), (OBJECTS_MAX, 1));
}

#[test]
fn a_message_has_a_length() {
    let fill = |length: usize| {
        let empty = r#"{"type":"state_snapshot","state":{},"x":""}"#;
        empty.replace(r#""x":"""#, &format!(r#""x":"{}""#, "x".repeat(length - empty.len())))
    };
    assert!(decode_peer(&fill(SNAPSHOT_MAX)).is_ok());
    let error = decode_peer(&fill(SNAPSHOT_MAX + 1)).unwrap_err();
    assert!(matches!(error.problem, Problem::WrongField { .. }), "{error}");
}

#[test]
fn names_and_visited_members_have_bounds() {
    let request = json!({"type": "forwarded_request", "request_id": "r", "payload": "",
        "visited": vec!["n"; VISITED_MAX + 1]});
    let Ok(FromPeer::Message(M::ForwardedRequest(read))) = decode_peer(&request.to_string()) else {
        panic!()
    };
    assert_eq!(read.visited.len(), VISITED_MAX);
    let mut long = info();
    long["name"] = json!("é".repeat(NAME_MAX));
    assert_eq!(session(&long).name.map(|name| name.len()), Some(NAME_MAX));
}

#[test]
fn a_large_state_goes_in_several_snapshots() {
    let sessions: Vec<_> = (0..40)
        .map(|at| {
            let mut text = info();
            text["id"] = json!(uuid::Uuid::from_u128(at));
            text["x"] = json!("x".repeat(10_000));
            SessionObject::from_text(&text.to_string(), 1).unwrap().owned_by("n")
        })
        .collect();
    let whole = State { sessions: sessions.clone(), version: 3, ..State::default() };
    let parts = StateSnapshot::split(whole, 100_000);
    assert!((10..=14).contains(&parts.len()), "{}", parts.len());
    let read: Vec<State> = parts
        .into_iter()
        .map(|part| {
            let text = M::StateSnapshot(part).encode();
            assert!(text.len() <= 100_000, "{}", text.len());
            state(&text)
        })
        .collect();
    assert!(read.iter().all(|state| state.version == 3));
    assert_eq!(read.into_iter().flat_map(|state| state.sessions).collect::<Vec<_>>(), sessions);
    assert_eq!(StateSnapshot::split(State::default(), 1).len(), 1);
}
