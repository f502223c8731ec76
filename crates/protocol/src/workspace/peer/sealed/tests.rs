//! Messages in JSON: an example of each, their bounds, and what is refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::workspace::{
    Problem,
    limits::*,
    peer::sealed::{SealedKind, SealedMessage, decode_sealed},
};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

fn examples() -> Vec<Value> {
    let member = json!({"node_id": "n", "key": KEY, "name": "burrow", "addresses": ["b:9179"]});
    vec![
        json!({"type": "welcome", "cluster_token": "secret", "since_ms": 1, "members": [member]}),
        json!({"type": "not_invited", "message": "already used"}),
        json!({"type": "new_token", "cluster_token": "secret", "since_ms": 2, "maker": KEY,
            "without": [KEY]}),
        json!({"type": "move_ask", "move": 7, "session_id": ID, "facts": {"a": [1]},
            "project": "p", "below": "src", "to_dir": "/q", "bytes": 12}),
        json!({"type": "move_answer", "move": 7, "problems": ["there is no claude"],
            "working_dir": "/q"}),
        json!({"type": "move_prepare", "move": 7, "session_id": ID, "moves": 1, "facts": {"a": [1]},
            "turn": 3, "last_seq": 9, "queue": ["p"], "applied": ["i1"], "files": [{"name": "c.jsonl", "size": 5}]}),
        json!({"type": "move_chunk", "move": 7, "file": 0, "offset": 0, "data": "AP8="}),
        json!({"type": "move_prepared", "move": 7, "session_id": ID}),
        json!({"type": "move_status", "move": 7, "session_id": ID}),
        json!({"type": "move_aborted", "move": 7, "session_id": ID}),
        json!({"type": "move_take", "move": 7, "session_id": ID}),
        json!({"type": "move_taken", "move": 7, "session_id": ID}),
        json!({"type": "move_refused", "move": 7, "message": "the disk is full"}),
    ]
}

fn read(message: &Value) -> SealedMessage {
    decode_sealed(&message.to_string()).unwrap().unwrap()
}

#[test]
fn every_message_is_written_as_it_was_read() {
    let examples = examples();
    assert_eq!(examples.len(), SealedKind::ALL.len());
    for (example, kind) in examples.iter().zip(SealedKind::ALL) {
        let message = read(example);
        assert_eq!(message.kind(), *kind);
        assert_eq!(serde_json::from_str::<Value>(&message.encode()).unwrap(), *example);
    }
}

#[test]
fn a_field_of_another_type_is_named() {
    let values =
        [json!(null), json!(true), json!(-1.5), json!("\u{7}"), json!([{}]), json!({"§": 1})];
    for example in examples() {
        for name in example.as_object().unwrap().keys().filter(|name| *name != "type") {
            let refused = values.iter().filter_map(|value| {
                let mut wrong = example.clone();
                wrong[name] = value.clone();
                decode_sealed(&wrong.to_string()).err()
            });
            let named = refused.map(|error| match error.problem {
                Problem::WrongField { field, .. } => assert!(field.starts_with(name), "{field}"),
                other => panic!("{other}"),
            });
            assert!(named.count() >= 3, "{example}: {name}");
        }
    }
}

#[test]
fn messages_of_later_versions_are_ignored_and_broken_ones_are_not() {
    assert_eq!(decode_sealed(r#"{"type":"dance","x":1}"#), Ok(None));
    assert!(decode_sealed(r#"{"type":"dance","x"}"#).is_err());
    assert!(decode_sealed("[]").is_err());
    let mut later = examples()[0].clone();
    later["x"] = json!([1]);
    assert_eq!(read(&later), read(&examples()[0]));
}

/// As much as a field may hold, and a bit more.
fn reaches(kind: &str, field: &str, fits: Value, more: Value) {
    let mut message = examples().into_iter().find(|example| example["type"] == kind).unwrap();
    message[field] = fits;
    assert!(decode_sealed(&message.to_string()).is_ok(), "{kind}.{field}");
    message[field] = more;
    let error = decode_sealed(&message.to_string()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("`{kind}`: field `{field}")), "{error}");
}

#[test]
fn every_field_has_a_bound() {
    let text = |max: usize| (json!("x".repeat(max)), json!("x".repeat(max + 1)));
    let list =
        |entry: Value, max: usize| (json!(vec![entry.clone(); max]), json!(vec![entry; max + 1]));
    let each = |max: usize| (json!(["x".repeat(max)]), json!(["x".repeat(max + 1)]));
    let member = examples()[0]["members"][0].clone();
    let file = examples()[5]["files"][0].clone();
    let bounds = [
        ("welcome", "cluster_token", text(TOKEN_MAX)),
        ("welcome", "members", list(member, MEMBERS_MAX)),
        ("new_token", "cluster_token", text(TOKEN_MAX)),
        ("new_token", "without", list(json!(KEY), BARRED_MAX)),
        ("not_invited", "message", text(REASON_MAX)),
        ("move_ask", "project", text(NAME_MAX)),
        ("move_ask", "below", text(PATH_MAX)),
        ("move_ask", "to_dir", text(PATH_MAX)),
        ("move_answer", "problems", list(json!("no"), REASONS_MAX)),
        ("move_answer", "problems", each(REASON_MAX)),
        ("move_answer", "working_dir", text(PATH_MAX)),
        (
            "move_prepare",
            "facts",
            (json!({"a": "x".repeat(OBJECT_MAX - 8)}), json!({"a": "x".repeat(OBJECT_MAX - 7)})),
        ),
        ("move_prepare", "queue", list(json!("p"), QUEUE_MAX)),
        ("move_prepare", "queue", each(PROMPT_MAX)),
        ("move_prepare", "applied", list(json!("i"), MOVED_MAX)),
        ("move_prepare", "applied", each(REQUEST_ID_MAX)),
        ("move_prepare", "files", list(file, MOVED_FILES_MAX)),
        ("move_refused", "message", text(REASON_MAX)),
    ];
    for (kind, field, (fits, more)) in bounds {
        reaches(kind, field, fits, more);
    }
    let data = |length: usize| json!(crate::workspace::base64::encode(&vec![0; length]));
    reaches("move_chunk", "data", data(MOVED_CHUNK_MAX), data(MOVED_CHUNK_MAX + 1));
}

#[test]
fn a_message_has_a_length() {
    let empty = r#"{"type":"not_invited","message":"","later":""}"#;
    let of = |length: usize| {
        empty
            .replace(r#""later":"""#, &format!(r#""later":"{}""#, "x".repeat(length - empty.len())))
    };
    assert!(decode_sealed(&of(LONG_MESSAGE_MAX)).is_ok());
    let error = decode_sealed(&of(LONG_MESSAGE_MAX + 1)).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn secrets_do_not_show_themselves() {
    for message in [&examples()[0], &examples()[2]] {
        assert!(!format!("{:?}", read(message)).contains("secret"));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_short(text: String, cut: prop::sample::Index) {
        for example in examples() {
            let example = example.to_string();
            let cut = &example[..example.floor_char_boundary(cut.index(example.len()))];
            prop_assert!(decode_sealed(cut).is_err_and(|error| error.to_string().len() < 1000));
        }
        if let Err(error) = decode_sealed(&text) {
            prop_assert!(error.to_string().len() < 1000);
        }
    }
}
