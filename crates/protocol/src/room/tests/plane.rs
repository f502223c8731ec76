//! The bodies of the HTTP API, as stock servers and clients write them.

use proptest::prelude::*;
use serde_json::json;

use super::{PARTICIPANT, SUMMARY, participant, same, summary};
use crate::room::{
    Capability, Invalid,
    plane::{
        ChangeRoom, CreateRoom, CreatedRoom, Envelope, ErrorCode, ErrorEnvelope, Meta, PlaneError,
        PutParticipant, PutParticipantAnswer, TunnelPlace,
    },
};

fn meta() -> Meta {
    Meta { request_id: "e0024f79".to_owned() }
}

fn create(body: &str) -> Result<CreateRoom, Invalid> {
    CreateRoom::decode(body.as_bytes())
}

fn put(body: &str) -> Result<PutParticipant, Invalid> {
    PutParticipant::decode(body.as_bytes())
}

#[test]
fn answers_are_those_of_the_captures() {
    let created =
        CreatedRoom { room: summary(), host_id: "684b583f-0000".to_owned(), host_token: None };
    same(
        &serde_json::to_string(&Envelope { data: created, meta: meta() }).unwrap(),
        &format!(
            r#"{{"data":{{"room":{SUMMARY},"hostId":"684b583f-0000"}},"meta":{{"requestId":"e0024f79"}}}}"#
        ),
    );
    let url = "ws://127.0.0.1:3911/v1/rooms/NZZ6LS/participants/p9/tunnel";
    let answer = PutParticipantAnswer {
        participant: participant(),
        room_id: "tNsiA6rNm6x9-OyqZnvaw".to_owned(),
        tunnel: TunnelPlace { token: "e7b8e9fc".to_owned(), url: url.to_owned() },
        session_token: None,
    };
    same(
        &serde_json::to_string(&Envelope { data: answer, meta: meta() }).unwrap(),
        &format!(
            r#"{{"data":{{"participant":{PARTICIPANT},"roomId":"tNsiA6rNm6x9-OyqZnvaw","tunnel":{{"token":"e7b8e9fc","url":"{url}"}}}},"meta":{{"requestId":"e0024f79"}}}}"#
        ),
    );
}

#[test]
fn errors_are_those_of_the_captures() {
    let error = ErrorEnvelope {
        error: PlaneError {
            code: ErrorCode::RoomNotFound,
            message: "Room not found.".to_owned(),
            hint: Some("Run 'gambi room list' to inspect available rooms.".to_owned()),
            details: None,
        },
        meta: meta(),
    };
    let stock = r#"{"error":{"code":"ROOM_NOT_FOUND","message":"Room not found.","hint":"Run 'gambi room list' to inspect available rooms."},"meta":{"requestId":"e0024f79"}}"#;
    assert_eq!(serde_json::to_string(&error).unwrap(), stock);
    assert_eq!(serde_json::from_str::<ErrorEnvelope>(stock).unwrap(), error);
    let later: PlaneError = serde_json::from_str(r#"{"code":"NEW","message":"x"}"#).unwrap();
    assert_eq!(later.code, ErrorCode::Unknown);
}

#[test]
fn a_room_of_a_stock_client_is_read() {
    let body =
        r#"{"name":"Locked","password":"s3","defaults":{"temperature":0.2,"instructions":" x "}}"#;
    let room = create(body).unwrap();
    assert_eq!((room.name.as_str(), room.password.as_deref()), ("Locked", Some("s3")));
    let defaults = room.defaults.unwrap();
    assert_eq!(defaults.generation.temperature, Some(0.2));
    assert_eq!(defaults.instructions.as_deref(), Some("x"));
    assert_eq!(create(r#"{"name":"x","password":null}"#).unwrap().password, None);
}

#[test]
fn a_participant_of_a_stock_client_is_read() {
    let body = r#"{"id":"other","nickname":"Nine","model":"m","endpoint":"http://127.0.0.1:1","specs":{"gpu":"RTX","vram":24,"ram":64,"cpu":"x"},"config":{"temperature":0.5,"instructions":"x"},"capabilities":{"openResponses":"unsupported","chatCompletions":"supported"}}"#;
    let read = put(body).unwrap();
    assert_eq!(read.specs.unwrap().vram, Some(24.0));
    let capabilities = read.capabilities.unwrap();
    assert_eq!(capabilities.open_responses, Capability::Unsupported);
    assert_eq!(read.max_concurrent, None);
    let least = put(r#"{"nickname":"N","model":"m","endpoint":"http://h"}"#).unwrap();
    assert_eq!((least.specs, least.config, least.capabilities), (None, None, None));
}

#[test]
fn missing_wrong_and_forbidden_fields_are_listed_in_the_details() {
    let details = |body: &str| put(body).unwrap_err().details();
    assert_eq!(details(r#"{"model":"m"}"#), json!({"required": ["nickname", "endpoint"]}));
    assert_eq!(
        details(r#"{"nickname":"n","model":"m","endpoint":"not a url"}"#),
        json!({"fieldErrors": {"endpoint": ["must be a URL that begins with http:// or https://"]}})
    );
    for headers in ["null", "{}", "{\"authorization\":\"x\"}"] {
        let body = format!(
            r#"{{"nickname":"n","model":"m","endpoint":"http://h","authHeaders":{headers}}}"#
        );
        assert_eq!(details(&body), json!({"forbidden": ["authHeaders"]}));
    }
    assert_eq!(
        create(r#"{"name":123,"defaults":{"temperature":9,"top_p":"x"}}"#).unwrap_err().details(),
        json!({"fieldErrors": {
            "name": ["invalid type: integer `123`, expected a string"],
            "defaults.top_p": ["invalid type: string \"x\", expected a number"],
        }})
    );
    assert_eq!(
        create(r#"{"name":"x","defaults":{"temperature":9,"max_tokens":0}}"#)
            .unwrap_err()
            .to_string(),
        "`defaults.max_tokens` must be at least 1; `defaults.temperature` must be from 0 to 2"
    );
    let cause = create("{").unwrap_err();
    assert!(cause.details()["cause"].as_str().unwrap().starts_with("the body is not JSON"));
    assert!(!format!("{cause}").is_empty());
}

#[test]
fn a_change_says_only_what_changes() {
    let change = |body: &str| ChangeRoom::decode(body.as_bytes());
    assert_eq!(change("{}").unwrap(), ChangeRoom::default());
    let all = change(r#"{"name":" n ","password":"","defaults":{}}"#).unwrap();
    assert_eq!((all.name.as_deref(), all.password.as_deref()), (Some("n"), Some("")));
    assert!(all.defaults.unwrap().is_empty());
    let unknown = change(r#"{"nmae":"n"}"#).unwrap_err().to_string();
    assert!(unknown.starts_with("unknown field `nmae`"), "{unknown}");
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_and_no_panic(body: Vec<u8>) {
        prop_assert!(CreateRoom::decode(&body).is_err());
        prop_assert!(ChangeRoom::decode(&body).is_err());
        prop_assert!(PutParticipant::decode(&body).is_err());
    }
}
