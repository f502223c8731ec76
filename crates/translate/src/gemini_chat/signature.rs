//! Thought signatures: what a provider needs to recognise its own thoughts, in the one opaque text that
//! Gemini's API has for that.
//!
//! | A provider sends | The client gets | The provider gets back |
//! | --- | --- | --- |
//! | `reasoning_details` with signatures or encrypted thoughts | them in `thoughtSignature` | the same `reasoning_details` |
//! | `extra_content` of a call | it in the call's `thoughtSignature` | the same `extra_content` |
//!
//! A signature is the base64 of that JSON. A signature that was not made here, such as Google's own, is of
//! no use to other providers and is dropped.

use std::borrow::Cow;

use protocol::{gemini::base64, json};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::chat_request::Message;

/// The longest signature, in bytes. A longer one is neither sent to a client nor read.
const MAX_SIGNATURE: usize = 256 * 1024;

/// The field in the JSON of a call's signature that holds the call's `extra_content`.
const CALL_FIELD: &str = "extra_content";

/// The signature of these details. `thought` is the text that they belong to, which is put into the
/// signed detail if it has none.
pub(super) fn of_details(details: &[Value], thought: &str) -> Option<String> {
    let mut details = details.to_vec();
    let signs_text = |detail: &&mut Value| detail.get("signature").is_some_and(Value::is_string);
    if let Some(Value::Object(signed)) = details.iter_mut().find(signs_text)
        && signed.get("text").and_then(Value::as_str).unwrap_or_default().is_empty()
        && !thought.is_empty()
    {
        signed.insert("text".to_owned(), thought.into());
    }
    within_bounds(base64::encode(json::write(&details).as_bytes()))
}

/// The signature of a call's `extra_content`, which is JSON.
pub(super) fn of_extra(extra: &str) -> Option<String> {
    within_bounds(base64::encode(format!("{{\"{CALL_FIELD}\":{extra}}}").as_bytes()))
}

fn within_bounds(signature: String) -> Option<String> {
    (signature.len() <= MAX_SIGNATURE).then_some(signature)
}

/// Puts the details of a signature into a message, unless the message has some already.
pub(super) fn remember(message: &mut Message<'_>, signature: Option<&str>) {
    if message.reasoning_details.is_none() {
        message.reasoning_details = signature.and_then(details);
    }
}

fn details(signature: &str) -> Option<Box<RawValue>> {
    let text = content(signature)?;
    let entries: Vec<Entry<'_>> = serde_json::from_str(&text).ok()?;
    let are_thoughts = entries.iter().all(|entry| entry.kind.starts_with("reasoning."));
    (!entries.is_empty() && are_thoughts).then(|| RawValue::from_string(text).ok()).flatten()
}

/// The `extra_content` of a call, by its signature.
pub(super) fn of_call(signature: &str) -> Option<Box<RawValue>> {
    let text = content(signature).filter(|text| text.starts_with('{'))?;
    let OfCall { extra_content } = serde_json::from_str(&text).ok()?;
    Some(extra_content.to_owned())
}

fn content(signature: &str) -> Option<String> {
    if signature.len() > MAX_SIGNATURE {
        return None;
    }
    String::from_utf8(base64::decode(signature)?).ok()
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfCall<'a> {
    #[serde(borrow)]
    extra_content: &'a RawValue,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat_request::Role;

    fn remembered(signature: &str) -> Option<Value> {
        let mut message = Message::empty(Role::Assistant);
        remember(&mut message, Some(signature));
        message.reasoning_details.map(|raw| serde_json::from_str(raw.get()).unwrap())
    }

    #[test]
    fn details_come_back_with_the_text_that_they_sign() {
        let detail =
            json!({"type": "reasoning.text", "signature": "s", "format": "anthropic-claude-v1"});
        let signature = of_details(std::slice::from_ref(&detail), "Hm.").unwrap();
        let mut with_text = detail;
        with_text["text"] = "Hm.".into();
        assert_eq!(remembered(&signature), Some(json!([with_text])));
        // Some clients write the other alphabet.
        let other = signature.replace('+', "-").replace('/', "_");
        assert_eq!(remembered(&other), remembered(&signature));
        let encrypted = json!({"type": "reasoning.encrypted", "data": "d"});
        let signature = of_details(std::slice::from_ref(&encrypted), "Hm.").unwrap();
        assert_eq!(remembered(&signature), Some(json!([encrypted])));
    }

    #[test]
    fn a_calls_own_comes_back_with_the_call() {
        let signature = of_extra(r#"{"google":{"thought_signature":"x"}}"#).unwrap();
        let extra = of_call(&signature).unwrap();
        assert_eq!(extra.get(), r#"{"google":{"thought_signature":"x"}}"#);
        assert_eq!(remembered(&signature), None);
    }

    #[test]
    fn signatures_of_others_say_nothing() {
        let thing = |value: Value| base64::encode(value.to_string().as_bytes());
        for signature in [
            "skip_thought_signature_validator".to_owned(),
            "not base64!".to_owned(),
            thing(json!([])),
            thing(json!([{"type": "text"}])),
            thing(json!({"role": "system"})),
            thing(json!({"extra_content": 1, "name": 2})),
            "A".repeat(MAX_SIGNATURE + 4),
        ] {
            assert_eq!(remembered(&signature), None);
            assert!(of_call(&signature).is_none());
        }
        let long = json!({"type": "reasoning.encrypted", "data": "x".repeat(MAX_SIGNATURE)});
        assert_eq!(of_details(&[long], ""), None);
    }
}
