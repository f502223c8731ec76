//! The specification's examples, with whole ids and the content that its dots leave out.

use serde_json::{Value, json};

use super::{ID, OTHER, info, project, read, session, team};
use crate::workspace::peer::{
    FromPeer, LEGACY, PeerKind, PeerMessage as M, StateSnapshot, decode_peer,
};

/// Each type, with its example.
fn examples() -> Vec<(PeerKind, Value)> {
    let snapshot = json!({"sessions": {ID: {"info": info()}}, "projects": {ID: project()},
        "teams": {ID: team()}, "version": 42});
    let list = [
        json!({"type": "peer_hello", "node_id": "a1b2c3d4", "cluster_token": "secret", "term": 0,
            "display_name": "node-a"}),
        json!({"type": "peer_hello_ack", "node_id": "b2c3d4e5", "term": 0, "success": true,
            "message": null, "display_name": "node-b"}),
        json!({"type": "state_snapshot", "term": 0, "state": snapshot}),
        json!({"type": "session_update", "term": 0, "seq": 0,
            "session": {"info": info(), "output_history": ["a"]}}),
        json!({"type": "session_removed", "term": 0, "seq": 0, "session_id": ID}),
        json!({"type": "session_unknown", "session_id": ID}),
        json!({"type": "project_upserted", "term": 0, "seq": 0, "project": project()}),
        json!({"type": "project_deleted", "term": 0, "seq": 0, "project_id": ID}),
        json!({"type": "team_upserted", "term": 0, "seq": 0, "team": team()}),
        json!({"type": "team_removed", "term": 0, "seq": 0, "team_id": ID}),
        json!({"type": "peer_rename_node", "name": "new-name"}),
        json!({"type": "peer_display_name_update", "name": "new-name"}),
        json!({"type": "forwarded_request", "request_id": "uuid-1",
            "payload": "{\"type\":\"send_input\"}", "hops": 4}),
        json!({"type": "forwarded_response", "request_id": "uuid-1", "payload": "{}"}),
        json!({"type": "subscribe_output", "subscriber_id": "uuid-1", "session_id": ID,
            "after_seq": 41}),
        json!({"type": "unsubscribe_output", "subscriber_id": "uuid-1"}),
        json!({"type": "session_output", "session_id": ID, "seq": 42, "data": "\u{1b}[m"}),
        json!({"type": "subscribe_project_files", "subscriber_id": "uuid-1", "project_id": ID}),
        json!({"type": "unsubscribe_project_files", "subscriber_id": "uuid-1"}),
        json!({"type": "project_files_changed", "subscriber_id": "uuid-1"}),
    ];
    assert_eq!(list.len(), PeerKind::ALL.len());
    PeerKind::ALL.iter().copied().zip(list).collect()
}

#[test]
fn every_example_is_read_and_written_the_same() {
    use PeerKind as K;
    for (kind, example) in examples() {
        let message = read(&example);
        assert_eq!(message.kind(), kind, "{example}");
        let written: Value = serde_json::from_str(&message.encode()).unwrap();
        // Objects are written with more fields than they are read from.
        let has_object = [K::StateSnapshot, K::SessionUpdate, K::ProjectUpserted, K::TeamUpserted]
            .contains(&kind);
        assert!(has_object || written == example, "{written}\n{example}");
        assert_eq!(read(&written), message);
    }
}

#[test]
fn an_object_gives_its_facts_and_its_description() {
    let session = session(&json!({"info": info(), "generation": 7, "node_id": "n2"}));
    assert_eq!((session.generation, session.owner.as_deref()), (7, Some("n2")));
    assert_eq!(session.name.as_deref(), Some("my-session"));
    assert_eq!(session.created_at, 1_736_937_000_000_000_000);
    assert_eq!(session.last_active, 1_736_937_300_000_000_000);
    let described = serde_json::to_value(session.info()).unwrap();
    let mut expected = info();
    expected["node_id"] = json!("n2");
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&described[field], value, "{field}");
    }

    let M::ProjectUpserted(upserted) =
        read(&json!({"type": "project_upserted", "project": project()}))
    else {
        panic!()
    };
    let object = upserted.project;
    assert_eq!((object.owner.as_deref(), object.name.as_deref()), (Some("n1"), Some("warren")));
    assert_eq!(object.created_at, 1_736_937_000_000_000_000);
    assert_eq!(object.updated_at, 1_736_937_300_000_000_001);
    assert_eq!(serde_json::to_value(object.project()).unwrap(), project());

    let M::TeamUpserted(upserted) = read(&json!({"type": "team_upserted", "team": team()})) else {
        panic!()
    };
    let object = upserted.team;
    assert_eq!((object.owner.clone(), object.leader), (None, Some(OTHER.parse().unwrap())));
    assert_eq!(object.last_active, 1_736_937_300_000_000_000);
    assert_eq!(serde_json::to_value(object.team()).unwrap(), team());
}

#[test]
fn a_snapshot_has_every_kind_of_object() {
    let (_, example) =
        examples().into_iter().find(|(kind, _)| *kind == PeerKind::StateSnapshot).unwrap();
    let M::StateSnapshot(StateSnapshot { state, .. }) = read(&example) else { panic!() };
    assert_eq!((state.sessions.len(), state.projects.len(), state.teams.len()), (1, 1, 1));
    assert_eq!((state.version, state.skipped), (42, 0));
}

#[test]
fn messages_of_elections_and_of_later_versions_are_ignored() {
    for legacy in LEGACY {
        let text = json!({"type": legacy, "term": {"a": [1]}, "x": 1}).to_string();
        assert_eq!(decode_peer(&text), Ok(FromPeer::Legacy(legacy)));
    }
    let dance = decode_peer(r#"{"term":0,"type":"dance"}"#);
    assert_eq!(dance, Ok(FromPeer::Unknown("dance".to_owned())));
}

#[test]
fn a_token_does_not_show_itself() {
    let (_, hello) = &examples()[0];
    let hello = read(hello);
    assert!(!format!("{hello:?}").contains("secret"));
    assert!(hello.encode().contains(r#""cluster_token":"secret""#));
}
