//! Messages of clients that are refused, and what is said of them.

use serde_json::{Value, json};

use super::messages::{decode, join, request};
use crate::room::{BadMessage, ClientMessage, limits};

fn bad(message: &Value) -> BadMessage {
    decode(message).unwrap_err()
}

/// The message with this value in the place of a field, or without it.
fn with(message: &Value, pointer: &str, new: Option<Value>) -> Value {
    let mut message = message.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let object = message.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match new {
        Some(new) => object.insert(name.to_owned(), new),
        None => object.remove(name),
    };
    message
}

#[test]
fn a_field_that_is_missing_is_named() {
    let required: [(Value, &[&str]); 4] = [
        (json!({"type": "room:create", "name": "x"}), &["/type", "/name"]),
        (
            join(),
            &[
                "/type",
                "/code",
                "/participant",
                "/participant/id",
                "/participant/nickname",
                "/participant/model",
                "/participant/endpoint",
            ],
        ),
        (request(), &["/requestId", "/targetId", "/prompt"]),
        (json!({"type": "host:register", "roomId": "x"}), &["/roomId"]),
    ];
    for (message, pointers) in required {
        for pointer in pointers {
            for absent in [None, Some(Value::Null)] {
                let path = pointer[1..].replace('/', ".");
                let wrong = bad(&with(&message, pointer, absent));
                assert_eq!(wrong.invalid.required, [path.as_str()]);
                assert_eq!(wrong.to_string(), format!("`{path}` is missing"));
            }
        }
    }
}

#[test]
fn a_field_of_the_wrong_type_is_named() {
    let fields = [
        (json!({"type": "room:create", "name": "x"}), "/name"),
        (json!({"type": "room:create", "name": "x"}), "/password"),
        (json!({"type": "room:create", "name": "x"}), "/defaults"),
        (json!({"type": "room:create", "name": "x"}), "/public"),
        (json!({"type": "room:create", "name": "x"}), "/expiresSecs"),
        (join(), "/type"),
        (join(), "/code"),
        (join(), "/password"),
        (join(), "/participant"),
        (join(), "/participant/id"),
        (join(), "/participant/nickname"),
        (join(), "/participant/model"),
        (join(), "/participant/endpoint"),
        (join(), "/participant/specs"),
        (join(), "/participant/specs/gpu"),
        (join(), "/participant/specs/ram"),
        (join(), "/participant/config"),
        (join(), "/participant/config/top_p"),
        (join(), "/participant/config/stop"),
        (join(), "/participant/config/instructions"),
        (join(), "/participant/maxConcurrent"),
        (request(), "/requestId"),
        (request(), "/targetId"),
        (request(), "/prompt"),
        (request(), "/options"),
        (request(), "/options/seed"),
        (request(), "/roomCode"),
        (json!({"type": "tui:register"}), "/roomCode"),
        (json!({"type": "host:register", "roomId": "x"}), "/roomId"),
    ];
    for (message, pointer) in fields {
        // A list is of no field's type, and neither is a list of lists.
        let wrong = bad(&with(&message, pointer, Some(json!([[]]))));
        let path = pointer[1..].replace('/', ".");
        let named = wrong.invalid.field_errors.keys().next().unwrap();
        assert!(named.starts_with(&path), "{path}: {wrong}");
        assert!(wrong.to_string().starts_with(&format!("`{path}")), "{wrong}");
    }
}

#[test]
fn a_name_that_is_a_number_is_no_name() {
    let wrong = bad(&json!({"type": "room:create", "name": 123}));
    assert_eq!(wrong.to_string(), "`name`: invalid type: integer `123`, expected a string");
}

#[test]
fn a_field_that_is_too_long_or_holds_control_characters_is_named() {
    let long = |bytes: usize| Value::from("x".repeat(bytes + 1));
    let fields = [
        (json!({"type": "room:create"}), "/name", long(limits::MAX_ROOM_NAME)),
        (json!({"type": "room:create", "name": "x"}), "/password", long(limits::MAX_PASSWORD)),
        (join(), "/code", long(limits::MAX_CODE)),
        (join(), "/participant/id", long(limits::MAX_ID)),
        (join(), "/participant/nickname", long(limits::MAX_NICKNAME)),
        (join(), "/participant/model", long(limits::MAX_MODEL)),
        (join(), "/participant/endpoint", long(limits::MAX_ENDPOINT)),
        (join(), "/participant/specs/gpu", long(limits::MAX_SPEC)),
        (join(), "/participant/config/instructions", long(limits::MAX_INSTRUCTIONS)),
        (join(), "/participant/config/stop", json!(vec!["x"; limits::MAX_STOPS + 1])),
        (join(), "/participant/maxConcurrent", json!(limits::MAX_CONCURRENT + 1)),
        (request(), "/requestId", long(limits::MAX_REQUEST_ID)),
        (request(), "/targetId", long(limits::MAX_SELECTOR)),
        (request(), "/roomCode", long(limits::MAX_CODE)),
        (json!({"type": "host:register"}), "/roomId", long(limits::MAX_CODE)),
    ];
    for (message, pointer, new) in fields {
        let path = pointer[1..].replace('/', ".");
        let is_text = new.is_string() && !path.ends_with("instructions");
        let wrong = bad(&with(&message, pointer, Some(new)));
        assert_eq!(wrong.invalid.field_errors.keys().collect::<Vec<_>>(), [&path]);
        if is_text {
            let wrong = bad(&with(&message, pointer, Some(json!("http://a\u{1b}[2Jb"))));
            assert_eq!(wrong.to_string(), format!("`{path}` must not hold control characters"));
        }
    }
}

#[test]
fn numbers_out_of_their_range_are_named() {
    let out = [
        ("temperature", json!(2.1), "from 0 to 2"),
        ("top_p", json!(-0.1), "from 0 to 1"),
        ("frequency_penalty", json!(3), "from -2 to 2"),
        ("presence_penalty", json!(-3), "from -2 to 2"),
        ("max_tokens", json!(0), "at least 1"),
    ];
    for (name, value, range) in out {
        let wrong = bad(&with(&request(), &format!("/options/{name}"), Some(value)));
        assert_eq!(wrong.to_string(), format!("`options.{name}` must be {range}"));
        assert_eq!(wrong.request_id.as_deref(), Some("q1"));
    }
    let negative = bad(&with(&request(), "/options/max_tokens", Some(json!(-1))));
    assert!(negative.to_string().ends_with("expected a whole number"), "{negative}");
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let wrong = bad(
        &json!({"type": "room:join", "code": "", "participant": {"nickname": 7, "model": "room:any", "endpoint": "x"}}),
    );
    assert_eq!(
        wrong.invalid.details(),
        json!({
            "required": ["participant.id"],
            "fieldErrors": {
                "code": ["must not be empty"],
                "participant.endpoint": ["must be a URL that begins with http:// or https://"],
                "participant.model": ["must not begin with `room:`"],
                "participant.nickname": ["invalid type: integer `7`, expected a string"],
            }
        })
    );
    assert_eq!(wrong.kind, Some("room:join"));
}

#[test]
fn unknown_types_and_what_is_no_message_say_what_is_wanted() {
    let unknown = bad(&json!({"type": "room:destroy", "requestId": "q"}));
    assert_eq!((unknown.kind, unknown.request_id.as_deref()), (None, Some("q")));
    assert!(unknown.to_string().starts_with("`type`: \"room:destroy\" is no message of a client"));
    for (body, cause) in [
        (&b""[..], "the body is empty: it must be a JSON object"),
        (b"{\"type\":", "the body is not JSON: EOF while parsing a value at line 1 column 8"),
        (b"[]", "the body must be a JSON object"),
        (b"\"x\"", "the body must be a JSON object"),
        (b"{\"type\":\"\xff\"}", "the body is not UTF-8 (byte 9)"),
        (b"{\"type\":1,\"type\":2}", "duplicate field `type` at line 1 column 16"),
    ] {
        let wrong = ClientMessage::decode(body).unwrap_err();
        assert_eq!(wrong.to_string(), cause);
        assert_eq!(wrong.invalid.details(), json!({ "cause": cause }));
    }
}

#[test]
fn errors_stay_short_whatever_was_sent() {
    let long = "x".repeat(100_000);
    for message in [
        json!({"type": long, "requestId": long}),
        json!({"type": "llm:request", "requestId": long, "prompt": {}}),
        json!({"type": "room:create", "name": "x", "defaults": {"stop": long, "instructions": [long]}}),
    ] {
        let wrong = bad(&message);
        assert!(wrong.to_string().len() < 1200 && wrong.request_id.is_none());
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let body = format!(r#"{{"x":{deep},"type":"list:rooms"}}"#);
    assert!(ClientMessage::decode(body.as_bytes()).is_ok());
    let body = format!(r#"{{"type":"room:create","name":{deep}}}"#);
    assert!(ClientMessage::decode(body.as_bytes()).is_err());
}

#[test]
fn a_list_is_no_object_though_its_values_would_fit() {
    let create = json!({"type": "room:create", "name": "x"});
    let cases = [
        (with(&create, "/defaults", Some(json!([]))), "defaults"),
        (with(&join(), "/participant", Some(json!(["id", "n", "m", "http://h"]))), "participant"),
        (with(&join(), "/participant/specs", Some(json!(["RTX", 24]))), "participant.specs"),
        (with(&join(), "/participant/config", Some(json!([0.5]))), "participant.config"),
        (with(&request(), "/options", Some(json!([]))), "options"),
    ];
    for (message, path) in cases {
        assert_eq!(bad(&message).invalid.field_errors[path], ["must be an object"]);
    }
    for fields in [13, 14, 15] {
        let list = json!(vec!["room:create"; fields]);
        assert_eq!(bad(&list).to_string(), "the body must be a JSON object");
    }
}
