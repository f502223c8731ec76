//! The spec's 17 messages, field by field as the spec has them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{participant, room, summary};
use crate::room::{
    BadMessage, ClientMessage, LlmMetrics, RuntimeConfig, ServerMessage, message::*,
};

pub(super) fn decode(message: &Value) -> Result<ClientMessage, BadMessage> {
    ClientMessage::decode(message.to_string().as_bytes())
}

pub(super) fn join() -> Value {
    json!({"type": "room:join", "code": "swift-eagle-42", "participant": {"id": "p1", "nickname": "Ann", "model": "llama3",
        "endpoint": "http://127.0.0.1:11434", "specs": {"gpu": "RTX", "vram": 24.0}, "config": {"temperature": 0.5, "stop": ["x"]}}})
}

pub(super) fn request() -> Value {
    json!({"type": "llm:request", "requestId": "q1", "targetId": "model:llama3", "prompt": "hi", "options": {"max_tokens": 5}})
}

fn every_client_message() -> [Value; 9] {
    [
        json!({"type": "room:create", "name": "Friends"}),
        join(),
        request(),
        json!({"type": "llm:request", "requestId": "q1", "targetId": "*", "prompt": ""}),
        json!({"type": "tui:register"}),
        json!({"type": "tui:register", "roomCode": "swift-eagle-42"}),
        json!({"type": "host:register", "roomId": "abc"}),
        json!({"type": "list:rooms"}),
        json!({"type": "room:create", "name": "Friends", "password": "pw", "public": true, "expiresSecs": 60,
            "defaults": {"top_p": 0.5, "instructions": "be brief"}}),
    ]
}

#[test]
fn every_message_of_a_client_is_read_and_written_as_the_spec_has_it() {
    for message in every_client_message() {
        let read = decode(&message).unwrap();
        assert_eq!(super::value(&read.encode()), message);
    }
}

#[test]
fn every_message_of_a_server_is_written_and_read_as_the_spec_has_it() {
    let participants = vec![participant()];
    let ask = |request_id: &str| (request_id.to_owned(), "p9".to_owned());
    let (request_id, participant_id) = ask("q1");
    let metrics = LlmMetrics {
        tokens: 4,
        latency_first_token_ms: 22,
        duration_ms: 40,
        tokens_per_second: 100.5,
    };
    let listed = serde_json::to_value(participant()).unwrap();
    let shown = serde_json::to_value(room()).unwrap();
    let counted = serde_json::to_value(summary()).unwrap();
    let all = [
        (
            ServerMessage::RoomCreated(RoomCreated {
                code: "swift-eagle-42".to_owned(),
                room_id: "r".to_owned(),
                short_code: "4V9SXC".to_owned(),
                host_token: "wh_x".to_owned(),
            }),
            json!({"type": "room:created", "code": "swift-eagle-42", "roomId": "r", "shortCode": "4V9SXC", "hostToken": "wh_x"}),
        ),
        (
            ServerMessage::RoomJoined(RoomJoined {
                room_id: "r".to_owned(),
                participants: participants.clone(),
                session_token: None,
            }),
            json!({"type": "room:joined", "roomId": "r", "participants": [listed]}),
        ),
        (
            ServerMessage::ParticipantJoined(ParticipantJoined { participant: participant() }),
            json!({"type": "room:participant-joined", "participant": listed}),
        ),
        (
            ServerMessage::ParticipantLeft(ParticipantLeft { participant_id: "p9".to_owned() }),
            json!({"type": "room:participant-left", "participantId": "p9"}),
        ),
        (
            ServerMessage::RoomError(RoomErrorMessage { error: "no".to_owned() }),
            json!({"type": "room:error", "error": "no"}),
        ),
        (
            ServerMessage::LlmToken(LlmToken {
                request_id: request_id.clone(),
                participant_id: participant_id.clone(),
                token: "Hé".to_owned(),
                seq: 0,
            }),
            json!({"type": "llm:token", "requestId": "q1", "participantId": "p9", "token": "Hé", "seq": 0}),
        ),
        (
            ServerMessage::LlmComplete(LlmComplete {
                request_id: request_id.clone(),
                participant_id: participant_id.clone(),
                metrics,
            }),
            json!({"type": "llm:complete", "requestId": "q1", "participantId": "p9",
                "metrics": {"tokens": 4, "latencyFirstTokenMs": 22, "durationMs": 40, "tokensPerSecond": 100.5}}),
        ),
        (
            ServerMessage::LlmError(LlmError {
                request_id,
                participant_id,
                error: "no".to_owned(),
            }),
            json!({"type": "llm:error", "requestId": "q1", "participantId": "p9", "error": "no"}),
        ),
        (
            ServerMessage::TuiRegistered(TuiRegistered {
                rooms: vec![room()],
                participants: participants.clone(),
            }),
            json!({"type": "tui:registered", "rooms": [shown], "participants": [listed]}),
        ),
        (
            ServerMessage::HostRegistered(HostRegistered { room: room(), participants }),
            json!({"type": "host:registered", "room": shown, "participants": [listed]}),
        ),
        (
            ServerMessage::ListRooms(ListRoomsResponse { rooms: vec![summary()] }),
            json!({"type": "list:rooms-response", "rooms": [counted]}),
        ),
    ];
    for (message, expected) in all {
        let written = message.encode();
        assert_eq!(super::value(&written), expected);
        assert_eq!(ServerMessage::decode(written.as_bytes()), Ok(message));
    }
    assert!(ServerMessage::decode(br#"{"type":"room:dance"}"#).is_err());
}

#[test]
fn names_and_instructions_are_trimmed_and_an_empty_password_is_none() {
    let created = decode(
        &json!({"type": "room:create", "name": " x ", "password": "", "defaults": {"instructions": " \n"}}),
    );
    let ClientMessage::RoomCreate(created) = created.unwrap() else { panic!("another message") };
    assert_eq!((created.name.as_str(), created.password), ("x", None));
    assert_eq!(created.defaults, Some(RuntimeConfig::default()));
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_and_no_panic(body: Vec<u8>) {
        prop_assert!(ClientMessage::decode(&body).is_err());
        prop_assert!(ServerMessage::decode(&body).is_err());
    }

    #[test]
    fn messages_survive_a_round_trip(at in 0..9usize, text in "\\PC{0,20}", eighths in -32..32i32) {
        // Numbers whose last digit does not depend on who reads them.
        let number = f64::from(eighths) / 8.0;
        for new in [json!(text), json!(number), json!({ "temperature": number })] {
            let mut message = every_client_message()[at].clone();
            let names: Vec<_> = message.as_object().unwrap().keys().cloned().collect();
            for name in names.iter().filter(|name| *name != "type") {
                message[name] = new.clone();
                if let Ok(read) = decode(&message) {
                    prop_assert_eq!(ClientMessage::decode(read.encode().as_bytes()), Ok(read));
                }
            }
        }
    }
}
