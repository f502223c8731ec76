//! Spellings that members of other programs may use, and the one that is written for all of them.

use serde_json::{Value, json};

use super::{ID, OTHER, info, project, read, session, team};
use crate::workspace::peer::{
    BadObject, FromPeer, PeerMessage as M, ProjectObject, SessionObject, SessionUpdate, State,
    StateSnapshot, TeamObject, TeamRemoved, Zero, decode_peer,
};

fn with(mut value: Value, fields: &Value) -> Value {
    let fields = fields.as_object().unwrap().clone();
    value.as_object_mut().unwrap().extend(fields);
    value
}

fn state(state: &Value) -> State {
    match read(&json!({"type": "state_snapshot", "state": state})) {
        M::StateSnapshot(snapshot) => snapshot.state,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_messages_have_two_names() {
    let names = [
        ("session_update", "session_upserted", json!({"session": {"info": info()}})),
        ("team_removed", "team_deleted", json!({"team_id": ID})),
    ];
    for (one, other, fields) in names {
        let message = read(&with(json!({"type": one}), &fields));
        assert_eq!(read(&with(json!({"type": other}), &fields)), message);
        let spellings = message.spellings();
        let types: Vec<String> = spellings
            .iter()
            .map(|text| {
                serde_json::from_str::<Value>(text).unwrap()["type"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(types, [one, other]);
        assert!(
            spellings
                .iter()
                .all(|text| decode_peer(text) == Ok(FromPeer::Message(message.clone())))
        );
    }
    let rename = read(&json!({"type": "peer_rename_node", "name": "team_removed"}));
    assert_eq!(rename.spellings(), [rename.encode()]);
}

#[test]
fn a_session_may_be_bare_or_in_info() {
    let wrapped = session(&json!({"info": info(), "generation": 3, "owner_node_id": "n"}));
    let bare =
        with(info(), &json!({"generation": 3, "owner_node_id": "n", "output_history": ["x"]}));
    assert_eq!(session(&bare), wrapped);
    assert_eq!(session(&with(bare, &json!({"info": null}))), wrapped);
}

#[test]
fn an_owner_is_in_info_or_beside_it_or_the_sender() {
    let owner = |beside: Value, within: Value| {
        session(&with(json!({"info": with(info(), &within)}), &beside)).owner
    };
    let of = |node: &str| Some(node.to_owned());
    assert_eq!(
        owner(json!({"owner_node_id": "b", "node_id": "c"}), json!({"node_id": "a"})),
        of("a")
    );
    assert_eq!(owner(json!({"owner_node_id": "b", "node_id": "c"}), json!({})), of("b"));
    assert_eq!(owner(json!({"node_id": "c"}), json!({})), of("c"));
    assert_eq!(owner(json!({"node_id": 7}), json!({"node_id": ""})), None);
    let adopted = session(&json!({"info": info()})).owned_by("d");
    assert_eq!(adopted.info().node_id, of("d"));
    assert_eq!(SessionObject::from_text(adopted.text.as_str(), 0), Ok(adopted));
}

#[test]
fn a_generation_is_beside_or_in_info_or_0() {
    let generation = |beside: Value, within: Value| {
        session(&with(json!({"info": with(info(), &within)}), &beside)).generation
    };
    assert_eq!(generation(json!({"generation": 9}), json!({"generation": 8})), 9);
    assert_eq!(generation(json!({}), json!({"generation": 8.0})), 8);
    assert_eq!(generation(json!({"generation": "9"}), json!({})), 0);
}

#[test]
fn a_session_is_written_with_every_name_that_is_looked_for() {
    let object = session(&json!({"info": info(), "generation": 5})).owned_by("n");
    let update = M::SessionUpdate(SessionUpdate { term: Zero, seq: Zero, session: object.clone() });
    let written: Value = serde_json::from_str(&update.encode()).unwrap();
    let full = with(info(), &json!({"node_id": "n", "generation": 5}));
    let beside = json!({"info": full, "generation": 5, "node_id": "n", "owner_node_id": "n",
        "output_history": []});
    assert_eq!(written, json!({"type": "session_update", "term": 0, "seq": 0, "session": beside}));
    let state = State { sessions: vec![object], ..State::default() };
    let snapshot = M::StateSnapshot(StateSnapshot { term: Zero, state });
    let written: Value = serde_json::from_str(&snapshot.encode()).unwrap();
    assert_eq!(written["state"]["sessions"][ID], with(full_bare(), &beside));
    assert_eq!(read(&written), snapshot);
}

fn full_bare() -> Value {
    with(info(), &json!({"node_id": "n"}))
}

#[test]
fn unknown_fields_stay_in_an_object() {
    let unknown = json!({"shade": {"a": [1, null]}, "é\n": "\u{1b}"});
    let text = with(info(), &unknown).to_string();
    let object = SessionObject::from_text(&text, 1).unwrap().owned_by("n");
    let written: Value = serde_json::to_value(&object).unwrap();
    for (name, value) in unknown.as_object().unwrap() {
        assert_eq!(&written["info"][name], value);
    }
    for text in [with(project(), &unknown), with(team(), &unknown)] {
        let project = ProjectObject::from_text(&text.to_string()).unwrap();
        let team = TeamObject::from_text(&text.to_string()).unwrap();
        for written in
            [serde_json::to_value(&project).unwrap(), serde_json::to_value(&team).unwrap()]
        {
            assert_eq!(written["shade"], unknown["shade"]);
        }
    }
}

#[test]
fn a_field_of_an_object_is_set_in_its_place() {
    let object = ProjectObject::from_text(&project().to_string()).unwrap();
    let renamed = object.text.with("name", &"burrow").unwrap();
    let expected = with(project(), &json!({"name": "burrow"}));
    assert_eq!(serde_json::from_str::<Value>(renamed.as_str()).unwrap(), expected);
    let longer = object.text.with("x", &"x".repeat(200_000));
    assert_eq!(longer, Err(BadObject::TooLong));
}

#[test]
fn a_team_says_its_last_change_in_both_ways() {
    let mut team = team();
    team.as_object_mut().unwrap().remove("last_active");
    team["updated_at"] = json!("2025-01-15T10:35:00Z");
    let object = TeamObject::from_text(&team.to_string()).unwrap();
    assert_eq!(object.last_active, 1_736_937_300_000_000_000);
    let written = serde_json::to_value(&object).unwrap();
    assert_eq!(written["last_active"], written["updated_at"]);
}

#[test]
fn a_project_without_dates_has_what_dates_it_has() {
    let mut one = project();
    one.as_object_mut().unwrap().remove("created_at");
    let object = ProjectObject::from_text(&one.to_string()).unwrap();
    assert_eq!(object.created_at, object.updated_at);
    assert_eq!(object.project().created_at, object.project().updated_at);
    let written = serde_json::to_value(&object).unwrap();
    assert_eq!(written["created_at"], written["updated_at"]);
    let bare = ProjectObject::from_text(&json!({"id": ID, "updated_at": 7}).to_string()).unwrap();
    assert_eq!((bare.created_at, bare.updated_at, bare.owner.as_ref()), (0, 0, None));
    assert_eq!(bare.project().name, ID);
}

#[test]
fn a_map_gives_ids_to_objects_without_one_and_a_list_will_do() {
    let mut nameless = project();
    nameless.as_object_mut().unwrap().remove("id");
    let state = state(&json!({
        "sessions": [info(), {"info": info()}],
        "projects": {OTHER: nameless},
        "teams": null,
        "tombstones": {ID: 1, OTHER: {"generation": 4}, "x": 0},
        "version": -1,
    }));
    assert_eq!((state.sessions.len(), state.teams.len(), state.version), (2, 0, 0));
    assert_eq!(state.projects[0].id.to_string(), OTHER);
    assert!(state.projects[0].text.as_str().contains(OTHER));
    let generations: Vec<_> = state.tombstones.iter().map(|it| it.generation).collect();
    assert_eq!((generations, state.skipped), (vec![None, Some(4)], 1));
    let list = self::state(&json!({"tombstones": [ID, {"session_id": OTHER, "generation": 2}]}));
    assert_eq!(list.tombstones.len(), 2);
}

#[test]
fn one_object_that_cannot_be_read_does_not_cost_the_others() {
    let state = state(&json!({
        "sessions": {ID: {"info": info()}, "x": {}, OTHER: 7},
        "projects": {ID: {"id": ID, "name": ["x"], "env": {"A": 1}}},
        "teams": "all",
    }));
    assert_eq!((state.sessions.len(), state.projects.len(), state.skipped), (1, 1, 2));
    assert_eq!(state.projects[0].project().env.len(), 0);
}

#[test]
fn a_description_is_made_of_nearly_nothing() {
    let nearly = session(&json!({"id": ID, "kind": {"type": "shell", "command": "bash"},
        "status": "dancing", "working_dir": "/\u{0}", "tags": ["a", "\u{1b}", ""], "name": 7}));
    let info = nearly.info();
    assert_eq!(info.mode, crate::workspace::SessionMode::Pty);
    assert_eq!(info.status, crate::workspace::SessionStatus::Running);
    assert_eq!((info.working_dir.as_str(), info.tags.as_slice()), ("", &["a".to_owned()][..]));
    assert!(info.reachable && info.name.is_none() && info.asks == 0);
    assert_eq!(session(&with(self::info(), &json!({"asks": 2}))).info().asks, 2);
    let team = TeamObject::from_text(&json!({"id": ID}).to_string()).unwrap();
    assert_eq!((team.leader, team.team()), (None, None));
}

#[test]
fn fields_of_the_wrong_type_count_as_missing() {
    let hello = json!({"type": "peer_hello", "node_id": "n", "cluster_token": null, "term": [{}],
        "display_name": {"a": 1}});
    let M::Hello(hello) = read(&hello) else { panic!() };
    assert_eq!((hello.cluster_token.expose(), hello.display_name), ("", None));
    let ack = json!({"type": "peer_hello_ack", "node_id": "n", "success": "yes", "message": 1});
    let M::HelloAck(ack) = read(&ack) else { panic!() };
    assert_eq!((ack.success, ack.message), (false, None));
    for (hops, read_as) in [(json!(0), 0), (json!(9), 4), (json!(-1), 4), (json!("2"), 4)] {
        let request = json!({"type": "forwarded_request", "request_id": "r", "hops": hops,
            "payload": {"type": "detach"}, "visited": ["n", 1]});
        let M::ForwardedRequest(request) = read(&request) else { panic!() };
        assert_eq!((request.hops, request.payload.as_str()), (read_as, r#"{"type":"detach"}"#));
    }
    let removed = read(&json!({"type": "team_removed", "team_id": ID, "seq": "x"}));
    let expected = TeamRemoved { term: Zero, seq: Zero, team_id: ID.parse().unwrap() };
    assert_eq!(removed, M::TeamRemoved(expected));
}
