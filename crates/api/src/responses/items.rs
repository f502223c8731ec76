//! The items of requests and responses: how they are kept, passed on and shown. Pure.

use protocol::json;
use rand::RngExt;
use serde_json::value::RawValue;
use store::ItemRecord;

use super::members::Members;
use crate::error::ApiError;

/// The items of an `input`, as JSON: a text is a message of the user.
///
/// # Errors
/// 400 when it is neither a text nor a list of objects.
pub(crate) fn of_input(input: &RawValue) -> Result<Vec<String>, ApiError> {
    let text = input.get();
    if text.starts_with('"') {
        let message = |text| {
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
            )
        };
        return Ok(vec![message(text)]);
    }
    let items: Option<Vec<&RawValue>> = serde_json::from_str(text).ok();
    let items = items.filter(|items| items.iter().all(|item| item.get().starts_with('{')));
    let items = items
        .ok_or_else(|| super::failure::invalid("input", "must be a text or a list of items"))?;
    Ok(items.into_iter().map(|item| item.get().to_owned()).collect())
}

/// The items of a kept list, or of a response's output.
pub(crate) fn of_list(list: &str) -> Vec<&RawValue> {
    serde_json::from_str(list).unwrap_or_default()
}

/// The output of a response.
pub(crate) fn of_response(response: &str) -> Vec<&RawValue> {
    let output = Members::read(response).and_then(|members| members.get("output"));
    output.map(|raw| of_list(raw.get())).unwrap_or_default()
}

/// A list of items, as JSON.
pub(crate) fn list<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("[");
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}

/// A new id that cannot be guessed: `prefix`, and 128 random bits.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{:032x}", rand::rng().random::<u128>())
}

/// The id of an item.
pub(crate) fn id(item: &str) -> Option<String> {
    Members::read(item)?.text("id").filter(|id| is_id(id))
}

/// Whether a text may be an id: it is short, and safe as a segment of a path.
pub(crate) fn is_id(text: &str) -> bool {
    const LONGEST: usize = 128;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The id that an item refers to, if it is a reference.
pub(crate) fn reference(item: &str) -> Option<String> {
    let members = Members::read(item)?;
    let is_one = members.text("type").as_deref() == Some("item_reference");
    if is_one { members.text("id") } else { None }
}

/// Whether an item is of use to the next provider. Reasoning of which only an id is left, without its text, is of use
/// only to the provider that made it.
pub(crate) fn is_for_others(item: &str) -> bool {
    let Some(members) = Members::read(item) else { return true };
    let is_thought = members.text("type").as_deref() == Some("reasoning");
    let has = |name| members.get(name).is_some_and(|raw| raw.get() != "[]");
    !is_thought || ["encrypted_content", "content", "summary"].into_iter().any(has)
}

/// An item as it is shown to clients: with an id (its own, or else `id`), and a message's text as a list of parts.
pub(crate) fn shown(item: &str, id: &str) -> String {
    let Some(members) = Members::read(item) else { return item.to_owned() };
    let kind = members.text("type").unwrap_or_else(|| "message".to_owned());
    let id =
        json::write(&members.text("id").filter(|own| is_id(own)).unwrap_or_else(|| id.to_owned()));
    let kind_text = json::write(&kind);
    let mut changes = vec![("id", Some(id.as_str())), ("type", Some(kind_text.as_str()))];
    let content = members.get("content").filter(|raw| raw.get().starts_with('"'));
    let content = content.filter(|_| kind == "message").map(|text| {
        let of_assistant = members.text("role").as_deref() == Some("assistant");
        let part = if of_assistant { "output_text\",\"annotations\":[]" } else { "input_text\"" };
        format!(r#"[{{"type":"{part},"text":{}}}]"#, text.get())
    });
    changes.extend(content.as_deref().map(|content| ("content", Some(content))));
    if kind == "message" && !members.has("status") {
        changes.push(("status", Some("\"completed\"")));
    }
    members.with(&changes)
}

/// An item with this id instead of its own, if it has one.
pub(crate) fn with_id(item: &str, id: &str) -> String {
    let id = json::write(&id);
    match Members::read(item) {
        Some(members) if members.has("id") => members.with(&[("id", Some(id.as_str()))]),
        _ => item.to_owned(),
    }
}

/// An item as a conversation keeps it.
pub(crate) fn item_record(item: &str) -> ItemRecord {
    let id = id(item).unwrap_or_else(|| new_id(prefix(item)));
    ItemRecord { id, json: item.to_owned() }
}

/// The prefix of the new id of an item that has no id of its own.
pub(crate) fn prefix(item: &str) -> &'static str {
    let kind = Members::read(item).and_then(|members| members.text("type"));
    match kind.as_deref() {
        None | Some("message") => "msg",
        Some("reasoning") => "rs",
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        Some(_) => "item",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_input_is_a_text_or_a_list_of_objects() {
        let text = of_input(&raw(r#""a \"b\"""#)).unwrap();
        let wanted = json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": "a \"b\""}]});
        assert_eq!(serde_json::from_str::<Value>(&text[0]).unwrap(), wanted);
        assert_eq!(of_input(&raw(r#"[{"a": 1}, {}]"#)).unwrap(), [r#"{"a": 1}"#, "{}"]);
        assert_eq!(of_input(&raw("[]")).unwrap(), [""; 0]);
        for bad in ["1", "{}", "[1]", r#"["a"]"#, "[null]"] {
            assert_eq!(of_input(&raw(bad)).unwrap_err().param.as_deref(), Some("input"), "{bad}");
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let items = [r#"{"a":1}"#, r#"{"b":[2]}"#];
        let read: Vec<String> =
            of_list(&list(items)).iter().map(|raw| raw.get().to_owned()).collect();
        assert_eq!(read, items);
        assert_eq!(
            (list([""; 0]), of_list("[]").len(), of_list("x").len()),
            ("[]".to_owned(), 0, 0)
        );
        let output = of_response(r#"{"id":"r","output":[{"a":1}]}"#);
        assert_eq!(output[0].get(), r#"{"a":1}"#);
        assert!(of_response("{}").is_empty() && of_response("[").is_empty());
    }

    #[test]
    fn a_thought_without_text_is_passed_on_to_nobody() {
        for said in [
            r#"{"type":"message"}"#,
            r#"{"type":"reasoning","encrypted_content":"x"}"#,
            r#"{"type":"reasoning","content":[{"type":"reasoning_text","text":"x"}],"summary":[]}"#,
            r#"{"type":"reasoning","summary":[{"text":"x"}]}"#,
        ] {
            assert!(is_for_others(said), "{said}");
        }
        for empty in [
            r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
            r#"{"type":"reasoning","encrypted_content":null,"content":[]}"#,
        ] {
            assert!(!is_for_others(empty), "{empty}");
        }
    }

    #[test]
    fn an_item_is_shown_as_sdks_read_it() {
        let show = |item: &str| serde_json::from_str::<Value>(&shown(item, "msg_new")).unwrap();
        let user = json!({"id": "msg_new", "type": "message", "role": "user", "status": "completed",
            "content": [{"type": "input_text", "text": "hi"}]});
        assert_eq!(show(r#"{"role":"user","content":"hi"}"#), user);
        let own = show(
            r#"{"id":"msg_1","type":"message","role":"assistant","content":"yo","status":"incomplete"}"#,
        );
        assert_eq!((&own["id"], &own["status"]), (&json!("msg_1"), &json!("incomplete")));
        assert_eq!(
            own["content"][0],
            json!({"type": "output_text", "annotations": [], "text": "yo"})
        );
        let call = r#"{"type":"function_call_output","call_id":"c","output":"x","content":"y"}"#;
        assert_eq!(show(call)["content"], "y");
        assert_eq!(show(r#"{"id":"../x","type":"reasoning"}"#)["id"], "msg_new");
        assert_eq!(shown("x", "i"), "x");
        assert_eq!(
            [r#"{}"#, r#"{"type":"reasoning"}"#, r#"{"type":"computer_call"}"#].map(prefix),
            ["msg", "rs", "item"]
        );
    }
}
