//! Messages that are not taken, and what is said of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{replies, requests};
use crate::workspace::{BadMessage, Problem, decode_reply, decode_request};

/// Values of every type that JSON has.
fn values() -> [Value; 7] {
    [json!(null), json!(true), json!(-1), json!(1.5), json!("§"), json!([{}]), json!({"§": []})]
}

/// Puts each value in the place of each field, and takes each field away.
fn mutations(value: &Value) -> Vec<(String, Option<Value>, String)> {
    let fields = value.as_object().unwrap();
    let mut all = Vec::new();
    for name in fields.keys().filter(|name| *name != "type") {
        let mut without = fields.clone();
        without.remove(name);
        all.push((name.clone(), None, Value::Object(without).to_string()));
        for wrong in values() {
            let mut with = fields.clone();
            with.insert(name.clone(), wrong.clone());
            all.push((name.clone(), Some(wrong), Value::Object(with).to_string()));
        }
    }
    all
}

/// A wrong field is named, with the type of the message.
fn names_the_field(error: &BadMessage, name: &str, text: &str) {
    let Problem::WrongField { field, .. } = &error.problem else { panic!("{text}: {error}") };
    let root = field.split(['.', '[']).next().unwrap();
    assert_eq!(root, name, "{text}: {error}");
    let kind = error.kind.as_deref().unwrap();
    let words = error.to_string();
    assert!(words.starts_with(&format!("`{kind}`: field `{field}`: ")), "{words}");
    assert!(words.len() < 600, "{words}");
}

#[test]
fn every_field_of_every_request_has_a_type() {
    for (_, value) in requests() {
        for name in value.as_object().unwrap().keys().filter(|name| *name != "type") {
            let refused = refusals(&value, name, |text| decode_request(text).err());
            // Whatever a field is, at most three of the seven values fit it.
            assert!(refused >= 4, "{value}: {name} takes nearly anything");
        }
    }
}

#[test]
fn every_field_of_every_reply_has_a_type() {
    for (_, value) in replies().filter(|(line, _)| !line.contains("permission_request")) {
        for name in value.as_object().unwrap().keys().filter(|name| *name != "type") {
            let refused = refusals(&value, name, |text| decode_reply(text).err());
            assert!(refused >= 4, "{value}: {name} takes nearly anything");
        }
    }
}

/// How many wrong values of a field are refused, each with an error that names it.
fn refusals(value: &Value, name: &str, decode: impl Fn(&str) -> Option<BadMessage>) -> usize {
    let wrong =
        mutations(value).into_iter().filter(|(field, wrong, _)| field == name && wrong.is_some());
    wrong
        .filter_map(|(_, _, text)| decode(&text).map(|error| (text, error)))
        .map(|(text, error)| names_the_field(&error, name, &text))
        .count()
}

#[test]
fn missing_fields_are_named_or_have_a_default() {
    for (_, value) in requests() {
        for (name, wrong, text) in mutations(&value) {
            let error = match (wrong, decode_request(&text)) {
                (None, Err(error)) => error,
                _ => continue,
            };
            names_the_field(&error, &name, &text);
            assert!(error.to_string().ends_with(": missing"), "{error}");
        }
    }
}

#[test]
fn missing_required_fields_are_refused() {
    let needed = [
        ("auth", "token"),
        ("attach", "session_id"),
        ("open_terminal", "command"),
        ("terminal_input", "data"),
        ("resize", "cols"),
        ("create_project", "working_dir"),
        ("write_project_file", "content"),
        ("move_project_entry", "to"),
        ("upload_project_file", "request_id"),
        ("upload_project_file_part", "offset"),
        ("handoff", "prompt"),
        ("permission_response", "allow"),
        ("report_result", "result"),
    ];
    for (kind, field) in needed {
        let (_, mut value) = requests().find(|(_, value)| value["type"] == kind).unwrap();
        value.as_object_mut().unwrap().remove(field);
        let error = decode_request(&value.to_string()).unwrap_err();
        assert_eq!(error.to_string(), format!("`{kind}`: field `{field}`: missing"));
    }
}

#[test]
fn errors_are_words_for_people() {
    let said = |text: &str| decode_request(text).unwrap_err().to_string();
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let resize = |cols: &str| {
        said(&format!(r#"{{"type":"resize","session_id":"{id}","cols":{cols},"rows":24}}"#))
    };
    assert_eq!(
        resize("-1"),
        "`resize`: field `cols`: invalid value: integer `-1`, expected a whole number from 0 to 65535"
    );
    assert_eq!(
        resize("\"80\""),
        "`resize`: field `cols`: invalid type: string \"80\", expected a whole number from 0 to 65535"
    );
    assert_eq!(
        said(r#"{"type":"attach","session_id":"mine"}"#),
        "`attach`: field `session_id`: invalid value: string \"mine\", expected an id such as \
         550e8400-e29b-41d4-a716-446655440000"
    );
    assert_eq!(
        said(r#"{"type":"new_session","tags":["a",7]}"#),
        "`new_session`: field `tags[1]`: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        said(r#"{"type":"new_session","mode":"vr"}"#),
        "`new_session`: field `mode`: unknown variant `vr`, expected one of `sdk`, `pty`, `adopted`"
    );
    assert_eq!(
        said(&format!(r#"{{"type":"interrupt","session_id":"{id}","session_id":"{id}"}}"#)),
        "`interrupt`: field `session_id`: there twice"
    );
    assert_eq!(said(r#"{"type":"dance"}"#), "unknown message type \"dance\"");
    assert_eq!(said(r#"{"type":7}"#), "the message has no `type` that is a string");
    assert_eq!(
        said("[]"),
        "the message is not a JSON object; send one such as {\"type\":\"list_sessions\"}"
    );
    assert_eq!(
        said("{\"type\":\"auth\",\n x}"),
        "the message is not JSON: key must be a string at line 2 column 2"
    );
}

#[test]
fn an_error_says_whose_request_it_was() {
    let error = decode_request(r#"{"type":"create_project_file","request_id":"r9"}"#).unwrap_err();
    assert_eq!(error.kind.as_deref(), Some("create_project_file"));
    assert_eq!(error.request_id.as_deref(), Some("r9"));
    let error = decode_request(r#"{"type":"x","request_id":"r9"}"#).unwrap_err();
    assert_eq!(error.request_id.as_deref(), Some("r9"));
}

#[test]
fn bytes_after_a_message_are_an_error() {
    for text in [r#"{"type":"detach"}}"#, r#"{"type":"detach"} {}"#, r#"{"type":"detach""#] {
        let error = decode_request(text).unwrap_err();
        assert!(matches!(error.problem, Problem::NotJson(_)), "{text}: {error}");
    }
}

#[test]
fn errors_stay_short_whatever_was_sent() {
    let long = "x\u{7}".repeat(100_000);
    let texts = [
        json!({"type": long}),
        json!({"type": "new_session", "mode": long}),
        json!({"type": "attach", "session_id": long}),
        json!({"type": "create_project", "env": {(long.as_str()): 1}}),
        json!({"type": "resize", "cols": long}),
    ];
    for text in texts {
        let error = decode_request(&text.to_string()).unwrap_err();
        let words = error.to_string();
        assert!(words.len() < 1000, "{} bytes", words.len());
        assert!(!words.contains('\u{7}'), "{words}");
    }
}

#[test]
fn depth_has_a_bound_where_it_is_kept_and_none_where_it_is_not() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(decode_request(&format!(r#"{{"type":"detach","x":{deep}}}"#)).is_ok());
    let (_, question) = replies().find(|(line, _)| line.contains("permission_request")).unwrap();
    let text = question.to_string().replace(r#"[1,2.5,null]"#, &deep);
    let error = decode_reply(&text).unwrap_err();
    names_the_field(&error, "input", &text);
    assert!(error.to_string().contains("recursion limit"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_short(text: String) {
        for error in [decode_request(&text).err(), decode_reply(&text).err()].into_iter().flatten() {
            prop_assert!(error.to_string().len() < 1000);
        }
    }

    #[test]
    fn every_cut_of_a_request_is_refused(at: prop::sample::Index) {
        for (line, _) in requests() {
            let cut = at.index(line.len());
            prop_assert!(decode_request(&line[..line.floor_char_boundary(cut)]).is_err());
        }
    }
}
