//! Messages that are not taken, and the words for their faults.

use serde_json::json;

use super::{ID, error, info};
use crate::workspace::{Problem, decode_peer};

#[test]
fn text_that_is_not_json_is_an_error_whatever_its_type() {
    for kind in ["heartbeat", "dance", "session_removed"] {
        let text = format!(r#"{{"type":"{kind}","session_id":"{ID}",}}"#);
        let error = decode_peer(&text).unwrap_err();
        assert!(matches!(error.problem, Problem::NotJson(_)), "{error}");
        assert_eq!(error.kind.as_deref(), Some(kind));
    }
    let said = |text: &str| decode_peer(text).unwrap_err().to_string();
    assert_eq!(
        said("[]"),
        r#"the message is not a JSON object; send one such as {"type":"peer_hello"}"#
    );
    assert_eq!(said("{}"), "the message has no `type` that is a string");
}

#[test]
fn fields_that_a_message_needs_are_named() {
    let id = "an id such as 550e8400-e29b-41d4-a716-446655440000";
    let missing = [
        (json!({"type": "peer_hello"}), "`peer_hello`: field `node_id`: missing".to_owned()),
        (
            json!({"type": "peer_hello", "node_id": "a\u{1b}"}),
            "`peer_hello`: field `node_id`: must be text of 1 to 128 bytes".to_owned(),
        ),
        (
            json!({"type": "peer_rename_node", "name": " "}),
            "`peer_rename_node`: field `name`: must be text that is not empty".to_owned(),
        ),
        (
            json!({"type": "session_update", "session": {}}),
            format!("`session_update`: field `session`: an object without {id}"),
        ),
        (
            json!({"type": "session_removed", "session_id": "x"}),
            format!(
                "`session_removed`: field `session_id`: invalid value: string \"x\", expected {id}"
            ),
        ),
        (
            json!({"type": "team_upserted", "team": [1]}),
            "`team_upserted`: field `team`: not a JSON object with each field once".to_owned(),
        ),
    ];
    for (message, words) in missing {
        assert_eq!(error(&message), words);
    }
}

#[test]
fn a_fault_says_which_request_it_was() {
    let error = decode_peer(r#"{"type":"forwarded_request","request_id":"r9"}"#).unwrap_err();
    assert_eq!(error.request_id.as_deref(), Some("r9"));
}

#[test]
fn an_object_with_a_field_twice_is_not_taken() {
    let text = format!(
        r#"{{"type":"session_update","session":{{"info":{{"id":"{ID}","mode":"sdk","mode":"pty"}}}}}}"#
    );
    assert!(decode_peer(&text).is_err());
}

#[test]
fn errors_stay_short_whatever_was_sent() {
    let long = "x\u{7}".repeat(100_000);
    for message in [
        json!({"type": long}),
        json!({"type": "session_removed", "session_id": long}),
        json!({"type": "session_update", "session": long}),
        json!({"type": "forwarded_request", "request_id": long, "payload": ""}),
        json!({"type": "session_update", "session": {"info": info(), "node_id": long}}),
    ] {
        if let Err(error) = decode_peer(&message.to_string()) {
            let words = error.to_string();
            assert!(words.len() < 1000 && !words.contains('\u{7}'), "{words}");
        }
    }
}
