//! Combines the chunks of a stream of Chat Completions into the whole answer that the same model
//! would have given, with everything in them: every choice, log probabilities, unknown fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, map::Entry};

use crate::{
    failure::{BadAnswer, MAX_KEPT},
    json,
};

type Object = Map<String, Value>;

/// Chunks, gathered until the answer is complete. At most [`MAX_KEPT`] bytes of them.
#[derive(Debug, Default)]
pub struct Gather {
    answer: Object,
    choices: BTreeMap<u64, Choice>,
    taken: usize,
}

#[derive(Debug, Default)]
struct Choice {
    fields: Object,
    message: Object,
    calls: BTreeMap<u64, Object>,
}

impl Gather {
    /// Takes the next chunk.
    ///
    /// # Errors
    /// [`BadAnswer`] when it is no object, or the answer grows too long.
    pub fn chunk(&mut self, chunk: &str) -> Result<(), BadAnswer> {
        self.taken += chunk.len();
        if self.taken > MAX_KEPT {
            return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
        }
        let chunk: Object = serde_json::from_str(chunk)
            .map_err(|error| BadAnswer(format!("a chunk is not understood: {error}")))?;
        for (name, value) in chunk {
            match (name.as_str(), value) {
                ("choices", Value::Array(choices)) => self.choices(choices),
                ("choices", _) => {}
                ("usage", value) => replace(&mut self.answer, name, value),
                (_, value) => keep_first(&mut self.answer, name, value),
            }
        }
        Ok(())
    }

    /// The whole answer, as JSON.
    ///
    /// # Errors
    /// [`BadAnswer`] when there was no content.
    pub fn finish(mut self) -> Result<String, BadAnswer> {
        if self.choices.is_empty() {
            return Err(BadAnswer("the answer is empty".to_owned()));
        }
        let choices = self.choices.into_iter().map(|(index, choice)| choice.whole(index));
        self.answer.insert("choices".to_owned(), choices.collect());
        self.answer.insert("object".to_owned(), "chat.completion".into());
        Ok(json::write(&self.answer))
    }

    fn choices(&mut self, choices: Vec<Value>) {
        for choice in choices {
            let Value::Object(fields) = choice else { continue };
            let index = fields.get("index").and_then(Value::as_u64).unwrap_or(0);
            self.choices.entry(index).or_default().take(fields);
        }
    }
}

impl Choice {
    fn take(&mut self, fields: Object) {
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("delta" | "message", Value::Object(delta)) => self.delta(delta),
                ("delta" | "message" | "index", _) => {}
                ("logprobs", Value::Object(more)) => extend_lists(&mut self.fields, name, more),
                (_, value) => replace(&mut self.fields, name, value),
            }
        }
    }

    fn delta(&mut self, delta: Object) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("tool_calls", Value::Array(calls)) => {
                    calls.into_iter().for_each(|it| self.call(it));
                }
                ("role", value) => keep_first(&mut self.message, name, value),
                (_, value) => append(&mut self.message, name, value),
            }
        }
    }

    /// Which call a piece belongs to: the one with its number. A piece without a number belongs to
    /// the last call, unless it has an id, which begins another call.
    fn call(&mut self, piece: Value) {
        let Value::Object(mut piece) = piece else { return };
        let told = piece.remove("index").and_then(|index| index.as_u64());
        let last = self.calls.last_key_value().map(|(index, _)| *index);
        let begins = piece.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
        let index = told.unwrap_or(match last {
            Some(last) if begins => last.saturating_add(1),
            last => last.unwrap_or(0),
        });
        let call = self.calls.entry(index).or_default();
        for (name, value) in piece {
            match (name.as_str(), value) {
                ("function" | "custom", value @ Value::Object(_)) => append(call, name, value),
                (_, value) => keep_first(call, name, value),
            }
        }
    }

    fn whole(mut self, index: u64) -> Value {
        self.message.entry("role").or_insert_with(|| "assistant".into());
        self.message.entry("content").or_insert(Value::Null);
        let calls: Vec<Value> = self.calls.into_values().map(Value::Object).collect();
        let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
        if !calls.is_empty() {
            self.message.insert("tool_calls".to_owned(), calls.into());
        }
        keep_first(&mut self.fields, "finish_reason".to_owned(), finish.into());
        self.fields.insert("index".to_owned(), index.into());
        self.fields.insert("message".to_owned(), self.message.into());
        self.fields.into()
    }
}

/// Keeps the first value, unless it is empty.
fn keep_first(object: &mut Object, name: String, value: Value) {
    match object.entry(name) {
        Entry::Occupied(mut there) if is_nothing(there.get()) => drop(there.insert(value)),
        Entry::Occupied(_) => {}
        Entry::Vacant(place) => drop(place.insert(value)),
    }
}

/// Keeps the last value, unless it is empty.
fn replace(object: &mut Object, name: String, value: Value) {
    if value.is_null() {
        object.entry(name).or_insert(value);
    } else {
        object.insert(name, value);
    }
}

/// Appends text to text, merges objects field by field and extends lists; the name of a tool is set
/// once.
fn append(object: &mut Object, name: String, value: Value) {
    let once = matches!(name.as_str(), "name" | "type" | "id" | "format");
    match (object.get_mut(&name), value) {
        (Some(Value::String(_)), Value::String(more)) if once => {
            keep_first(object, name, more.into());
        }
        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (Some(Value::Object(there)), Value::Object(more)) => {
            more.into_iter().for_each(|(name, value)| append(there, name, value));
        }
        (_, value) => replace(object, name, value),
    }
}

fn extend_lists(object: &mut Object, name: String, more: Object) {
    append(object, name, more.into());
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole(chunks: &[Value]) -> Value {
        let mut gather = Gather::default();
        for chunk in chunks {
            gather.chunk(&chunk.to_string()).unwrap();
        }
        serde_json::from_str(&gather.finish().unwrap()).unwrap()
    }

    fn chunk(index: u64, delta: &Value, finish: Option<&str>) -> Value {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m",
            "system_fingerprint": null, "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})
    }

    #[test]
    fn text_of_every_choice_is_joined_and_the_rest_is_kept() {
        let usage = json!({"id": "chatcmpl-1", "choices": [], "usage": {"total_tokens": 3}});
        let chunks = [
            chunk(0, &json!({"role": "assistant", "content": "", "reasoning_content": "h"}), None),
            chunk(1, &json!({"role": "assistant", "content": "b"}), None),
            chunk(0, &json!({"content": "a é", "reasoning_content": "m", "odd": 1}), None),
            chunk(0, &json!({"content": "!", "role": "assistant"}), Some("length")),
            chunk(1, &json!({}), Some("stop")),
            usage,
        ];
        let expected = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 5, "model": "m",
            "system_fingerprint": null, "usage": {"total_tokens": 3}, "choices": [
                {"index": 0, "finish_reason": "length", "message": {"role": "assistant",
                    "content": "a é!", "reasoning_content": "hm", "odd": 1}},
                {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "b"}}]});
        assert_eq!(whole(&chunks), expected);
    }

    #[test]
    fn calls_are_put_together_with_or_without_their_numbers() {
        let call = |piece: Value| chunk(0, &json!({"tool_calls": [piece]}), None);
        let numbered = [
            call(
                json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
            ),
            call(
                json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}),
            ),
            call(json!({"index": 0, "function": {"arguments": "{\"x\""}})),
            call(json!({"index": 0, "function": {"arguments": ":1}"}})),
        ];
        let plain = [
            call(
                json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\""}}),
            ),
            call(json!({"function": {"arguments": ":1}"}})),
            call(
                json!({"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}),
            ),
        ];
        let expected = json!([
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]);
        for chunks in [&numbered[..], &plain] {
            let choice = &whole(chunks)["choices"][0];
            assert_eq!(choice["message"]["tool_calls"], expected);
            assert_eq!(
                (&choice["message"]["content"], &choice["finish_reason"]),
                (&Value::Null, &json!("tool_calls"))
            );
        }
    }

    #[test]
    fn log_probabilities_are_joined() {
        let with = |token: &str| json!({"choices": [{"delta": {"content": token}, "logprobs": {"content": [{"token": token}]}}]});
        let whole = whole(&[with("a"), with("b")]);
        let expected = json!({"content": [{"token": "a"}, {"token": "b"}]});
        assert_eq!(whole["choices"][0]["logprobs"], expected);
        assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    }

    #[test]
    fn nothing_and_too_much_are_no_answer() {
        assert!(Gather::default().finish().is_err());
        let mut gather = Gather::default();
        assert!(gather.chunk("[]").is_err());
        let mebibyte = chunk(0, &json!({"content": "x".repeat(1024 * 1024)}), None).to_string();
        let taken = (0..100).take_while(|_| gather.chunk(&mebibyte).is_ok()).count();
        assert_eq!(taken, MAX_KEPT / mebibyte.len());
    }
}
