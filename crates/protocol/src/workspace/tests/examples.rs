//! Every example is read, and written again as it was.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{REPLIES, REPLIES_OURS, replies, requests};
use crate::workspace::{
    ClientMessage, ReplyKind, RequestKind, ServerMessage, SessionKind, SessionMode, SessionStatus,
    client::{Encoding, OfSession},
    decode_reply, decode_request,
};

fn written(message: &impl serde::Serialize) -> Value {
    serde_json::to_value(message).unwrap()
}

#[test]
fn every_request_is_written_as_it_was_read() {
    for (line, value) in requests() {
        let read = decode_request(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(written(&read), value);
        assert_eq!(read.name(), value["type"]);
        assert_eq!(decode_request(&read.encode()).unwrap(), read);
        assert_eq!(serde_json::from_value::<ClientMessage>(value).unwrap(), read);
    }
}

#[test]
fn every_reply_is_written_as_it_was_read() {
    for (line, value) in replies() {
        let read = decode_reply(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(read.name(), value["type"]);
        assert_eq!(decode_reply(&read.encode()).unwrap(), read);
        assert_eq!(serde_json::from_str::<ServerMessage>(line).unwrap(), read);
    }
    for (line, value) in super::examples("", REPLIES_OURS) {
        assert_eq!(written(&decode_reply(line).unwrap()), value);
    }
}

/// The specification leaves out fields of sessions and teams; those that are there stay the same,
/// and the others get their defaults.
#[test]
fn replies_are_written_as_in_the_specification() {
    for (line, value) in super::examples(REPLIES, "") {
        let again = written(&decode_reply(line).unwrap());
        assert!(holds(&again, &value), "{line}\n{again}");
        let whole = !line.contains("\"mode\"") && !line.contains("team\":");
        assert!(!whole || again == value, "{line}\n{again}");
    }
}

/// Whether every field of `part` is in `whole`.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| holds(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(one, other)| holds(one, other))
        }
        _ => whole == part,
    }
}

#[test]
fn every_message_has_an_example() {
    let shown = |examples: &mut dyn Iterator<Item = (&str, Value)>| -> BTreeSet<String> {
        examples.map(|(_, value)| value["type"].as_str().unwrap().to_owned()).collect()
    };
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let requests = shown(&mut requests());
    assert_eq!(requests, all(RequestKind::NAMES));
    let replies = shown(&mut replies());
    assert_eq!(replies, all(ReplyKind::NAMES));
    assert_eq!((requests.len(), replies.len()), (63, 59));
}

#[test]
fn an_older_daemons_session_has_defaults() {
    let line = REPLIES.lines().find(|line| line.contains("session_created")).unwrap();
    let Ok(ServerMessage::SessionCreated(created)) = decode_reply(line) else { panic!("{line}") };
    let session = created.session;
    assert_eq!((session.mode, session.status), (SessionMode::Sdk, SessionStatus::Idle));
    assert_eq!((session.kind, session.provider.as_str()), (SessionKind::Claude, "claude"));
    assert!(session.reachable && !session.hidden && !session.is_team_leader);
    assert_eq!((session.dev_server_port, session.team_id, session.node_id), (None, None, None));
    assert!(session.tags.is_empty() && session.asks == 0);
}

#[test]
fn a_provider_says_what_a_session_runs() {
    let kind = |provider: &str| serde_json::to_value(SessionKind::of_provider(provider)).unwrap();
    assert_eq!(kind("claude"), json!({"type": "claude"}));
    assert_eq!(kind("codex"), json!({"type": "agent", "provider": "codex"}));
}

#[test]
fn null_and_nothing_mean_the_default() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let same = [
        (
            json!({"type": "resize", "session_id": id, "cols": 80, "rows": 24}),
            json!({"type": "resize", "session_id": id, "cols": 80, "rows": 24, "visible": null}),
        ),
        (
            json!({"type": "terminal_input", "session_id": id, "data": ""}),
            json!({"type": "terminal_input", "session_id": id, "data": "", "encoding": null,
                "input_id": null}),
        ),
        (
            json!({"type": "new_session"}),
            json!({"type": "new_session", "working_dir": null, "mode": null, "model": null,
                "name": null, "extra_args": null, "run_as_user": null, "node_id": null,
                "provider": null, "hidden": null, "tags": null, "project_id": null, "cols": null,
                "rows": null}),
        ),
        (
            json!({"type": "create_project", "name": "n", "working_dir": "/"}),
            json!({"type": "create_project", "name": "n", "working_dir": "/", "env": null,
                "run_as_user": null}),
        ),
        (
            json!({"type": "list_sessions"}),
            json!({"type": "list_sessions", "include_hidden": null}),
        ),
    ];
    for (without, with_null) in same {
        let [one, other] = [without, with_null].map(|value| decode_request(&value.to_string()));
        assert_eq!(one, other);
        assert!(one.is_ok(), "{one:?}");
    }
}

#[test]
fn defaults_are_what_the_protocol_says() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let text = format!(r#"{{"type":"resize","session_id":"{id}","cols":80,"rows":24}}"#);
    let Ok(ClientMessage::Resize(resize)) = decode_request(&text) else { panic!("{text}") };
    assert!(resize.visible);
    let text = format!(r#"{{"type":"terminal_input","session_id":"{id}","data":"é"}}"#);
    let Ok(ClientMessage::TerminalInput(input)) = decode_request(&text) else { panic!("{text}") };
    assert_eq!(input.encoding, Encoding::Text);
    assert_eq!(input.bytes().unwrap(), "é".as_bytes());
}

#[test]
fn keys_that_are_no_text_come_as_base64() {
    let input = |data: &str| {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        let value = json!({"type": "terminal_input", "session_id": id, "data": data,
            "encoding": "base64"});
        match decode_request(&value.to_string()).unwrap() {
            ClientMessage::TerminalInput(input) => input.bytes(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(input("AP8=").unwrap(), [0, 255]);
    let error = input("AP8").unwrap_err().to_string();
    assert!(error.starts_with("`data` is not base64"), "{error}");
}

#[test]
fn unknown_fields_and_any_order_are_taken() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let texts = [
        format!(r#"{{"type":"interrupt","session_id":"{id}","shade":{{"a":[1]}}}}"#),
        format!(r#" {{ "session_id" : "{id}" , "type" : "interrupt" }} "#),
        format!(r#"{{"t\u0079pe":"interr\u0075pt","session_id":"{id}"}}"#),
    ];
    for text in texts {
        let wanted = ClientMessage::Interrupt(OfSession { session_id: id.parse().unwrap() });
        assert_eq!(decode_request(&text), Ok(wanted), "{text}");
    }
    assert_eq!(decode_request(r#"{"type":"detach","x":1}"#), Ok(ClientMessage::Detach));
}

#[test]
fn a_token_does_not_show_itself() {
    let auth = decode_request(r#"{"type":"auth","token":"abc123"}"#).unwrap();
    assert!(!format!("{auth:?}").contains("abc123"));
}
