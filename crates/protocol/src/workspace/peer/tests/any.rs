//! Every message, with anything in it.

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Map, Value, json};

use crate::workspace::{
    ProjectId, SessionId, TeamId,
    client::OfSession,
    peer::{
        ForwardedRequest, ForwardedResponse, FromPeer, NodeName, OfSubscriber, PeerHello,
        PeerHelloAck, PeerMessage as M, ProjectDeleted, ProjectObject, ProjectUpserted,
        SessionObject, SessionOutput, SessionRemoved, SessionUpdate, State, StateSnapshot,
        SubscribeOutput, SubscribeProjectFiles, TeamObject, TeamRemoved, TeamUpserted, Zero,
        decode_peer,
    },
};

fn node() -> impl Strategy<Value = String> {
    "[a-zé\"\\\\ ]{1,20}"
}

fn shown() -> impl Strategy<Value = String> {
    "[a-zé\"\\\\]{1,20}"
}

fn time() -> impl Strategy<Value = Value> {
    (0..4_000_000_000_i64, 0..1_000_000_000_i32)
        .prop_map(|(seconds, nanos)| json!(jiff::Timestamp::new(seconds, nanos).unwrap()))
}

/// Fields of objects, right and wrong.
fn fields() -> impl Strategy<Value = Map<String, Value>> {
    let name = "name|status|kind|node_id|owner_node_id|generation|x[a-z\"\n]{0,3}|env|tags";
    let value = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({"a": [1, {"_0": true}], "": "]"})),
        Just(json!({"type": "shell", "command": "sh"})),
    ];
    prop::collection::btree_map(name, value, 0..5).prop_map(|map| map.into_iter().collect())
}

fn object(bits: u128, times: [Value; 3], mut fields: Map<String, Value>) -> String {
    let [created_at, updated_at, last_active] = times;
    fields.extend([
        ("id".to_owned(), json!(SessionId::from_random(bits))),
        ("created_at".to_owned(), created_at),
        ("updated_at".to_owned(), updated_at),
        ("last_active".to_owned(), last_active),
    ]);
    Value::Object(fields).to_string()
}

fn text() -> impl Strategy<Value = String> {
    let times = (time(), time(), time()).prop_map(|(a, b, c)| [a, b, c]);
    (any::<u128>(), times, fields()).prop_map(|(bits, times, fields)| object(bits, times, fields))
}

fn session() -> impl Strategy<Value = SessionObject> {
    (text(), any::<u64>(), option::of(node())).prop_map(|(text, generation, owner)| {
        let session = SessionObject::from_text(&text, generation).unwrap();
        match owner {
            Some(owner) => session.owned_by(&owner),
            None => session,
        }
    })
}

fn project() -> impl Strategy<Value = ProjectObject> {
    text().prop_map(|text| ProjectObject::from_text(&text).unwrap())
}

fn team() -> impl Strategy<Value = TeamObject> {
    text().prop_map(|text| TeamObject::from_text(&text).unwrap())
}

fn objects() -> impl Strategy<Value = M> {
    prop_oneof![
        session().prop_map(|session| {
            M::SessionUpdate(SessionUpdate { term: Zero, seq: Zero, session })
        }),
        project().prop_map(|project| {
            M::ProjectUpserted(ProjectUpserted { term: Zero, seq: Zero, project })
        }),
        team().prop_map(|team| M::TeamUpserted(TeamUpserted { term: Zero, seq: Zero, team })),
        (vec(session(), 0..4), vec(project(), 0..3), vec(team(), 0..3), any::<u64>()).prop_map(
            |(mut sessions, mut projects, mut teams, version)| {
                sessions.sort_by_key(|session| session.id);
                projects.sort_by_key(|project| project.id);
                teams.sort_by_key(|team| team.id);
                let state = State { sessions, projects, teams, version, ..State::default() };
                M::StateSnapshot(StateSnapshot { term: Zero, state })
            }
        ),
        any::<u128>().prop_map(|bits| {
            let session_id = SessionId::from_random(bits);
            M::SessionRemoved(SessionRemoved { term: Zero, seq: Zero, session_id })
        }),
        any::<u128>().prop_map(|bits| {
            let project_id = ProjectId::from_random(bits);
            M::ProjectDeleted(ProjectDeleted { term: Zero, seq: Zero, project_id })
        }),
        any::<u128>().prop_map(|bits| {
            M::TeamRemoved(TeamRemoved {
                term: Zero,
                seq: Zero,
                team_id: TeamId::from_random(bits),
            })
        }),
    ]
}

fn nodes() -> impl Strategy<Value = M> {
    prop_oneof![
        (node(), any::<String>(), option::of(shown())).prop_map(
            |(node_id, token, display_name)| {
                let cluster_token = token.into();
                M::Hello(PeerHello { node_id, cluster_token, term: Zero, display_name })
            }
        ),
        (node(), any::<bool>(), option::of(shown()), option::of(shown())).prop_map(
            |(node_id, success, message, display_name)| {
                M::HelloAck(PeerHelloAck { node_id, term: Zero, success, message, display_name })
            }
        ),
        shown().prop_map(|name| M::RenameNode(NodeName { name })),
        shown().prop_map(|name| M::DisplayNameUpdate(NodeName { name })),
        any::<u128>().prop_map(|bits| {
            M::SessionUnknown(OfSession { session_id: SessionId::from_random(bits) })
        }),
    ]
}

fn requests() -> impl Strategy<Value = M> {
    let id = || any::<String>().prop_filter("short", |id| id.len() <= 256);
    prop_oneof![
        (id(), any::<String>(), 0..=4_u8, vec(node(), 0..3)).prop_map(
            |(request_id, payload, hops, visited)| {
                M::ForwardedRequest(ForwardedRequest { request_id, payload, hops, visited })
            }
        ),
        (id(), any::<String>()).prop_map(|(request_id, payload)| {
            M::ForwardedResponse(ForwardedResponse { request_id, payload })
        }),
        (id(), any::<u128>(), option::of(any::<u64>())).prop_map(
            |(subscriber_id, bits, after_seq)| {
                let session_id = SessionId::from_random(bits);
                M::SubscribeOutput(SubscribeOutput { subscriber_id, session_id, after_seq })
            }
        ),
        id().prop_map(|subscriber_id| M::UnsubscribeOutput(OfSubscriber { subscriber_id })),
        (any::<u128>(), any::<u64>(), any::<String>()).prop_map(|(bits, seq, data)| {
            M::SessionOutput(SessionOutput { session_id: SessionId::from_random(bits), seq, data })
        }),
        (id(), any::<u128>()).prop_map(|(subscriber_id, bits)| {
            let project_id = ProjectId::from_random(bits);
            M::SubscribeProjectFiles(SubscribeProjectFiles { subscriber_id, project_id })
        }),
        id().prop_map(|subscriber_id| M::UnsubscribeProjectFiles(OfSubscriber { subscriber_id })),
        id().prop_map(|subscriber_id| M::ProjectFilesChanged(OfSubscriber { subscriber_id })),
    ]
}

proptest! {
    #[test]
    fn every_message_is_read_as_it_was_written(
        message in prop_oneof![objects(), nodes(), requests()],
    ) {
        for text in message.spellings() {
            let expected = FromPeer::Message(message.clone());
            prop_assert_eq!(decode_peer(&text), Ok(expected), "{}", text);
        }
    }

    #[test]
    fn an_object_that_was_read_stays_as_it_is(session in session(), project in project()) {
        let again = SessionObject::from_text(session.text.as_str(), session.generation);
        prop_assert_eq!(again, Ok(session.clone()));
        prop_assert_eq!(ProjectObject::from_text(project.text.as_str()), Ok(project));
        let made = SessionObject::new(&session.info(), "n", session.generation).unwrap();
        let expected = session.owned_by("n").info();
        prop_assert_eq!(made.info(), expected);
    }

    #[test]
    fn any_text_is_read_or_refused_in_short(text: String, cut: prop::sample::Index, of in objects()) {
        let written = of.encode();
        let cut = &written[..written.floor_char_boundary(cut.index(written.len()))];
        for text in [&*text, cut] {
            if let Err(error) = decode_peer(text) {
                prop_assert!(error.to_string().len() < 1000);
            }
        }
        prop_assert!(decode_peer(cut).is_err());
    }
}
