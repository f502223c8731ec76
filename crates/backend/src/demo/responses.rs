//! `/v1/responses`.

use serde_json::{Value, json};

use super::{Reply, script::Script};

pub(super) fn whole(reply: &Reply) -> Value {
    response(reply, ResponseState::Over)
}

pub(super) fn script(reply: &Reply) -> Script {
    let mut events = Events::default();
    let begun = response(reply, ResponseState::Begun);
    events.add(json!({"type": "response.created", "response": begun}));
    events.add(json!({"type": "response.in_progress", "response": begun}));
    let item = item(reply, "in_progress", &json!([]));
    events.add(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    events.add(on_part(reply, "response.content_part.added", "part", part("")));
    for word in &reply.words {
        let mut event = on_part(reply, "response.output_text.delta", "delta", json!(word));
        event["logprobs"] = json!([]);
        events.add_word(event);
    }
    end(reply, &mut events);
    events.script
}

fn end(reply: &Reply, events: &mut Events) {
    let text = reply.text();
    let mut done = on_part(reply, "response.output_text.done", "text", json!(text));
    done["logprobs"] = json!([]);
    events.add(done);
    events.add(on_part(reply, "response.content_part.done", "part", part(&text)));
    let item = finished_item(reply);
    events.add(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    let kind = format!("response.{}", status(reply));
    events.add(json!({"type": kind, "response": response(reply, ResponseState::Over)}));
}

/// Collects events with their sequence numbers, which this API wants.
#[derive(Default)]
struct Events {
    script: Script,
    number: u64,
}

impl Events {
    fn add(&mut self, event: Value) {
        let (name, event) = self.numbered(event);
        self.script.event(&name, &event);
    }

    fn add_word(&mut self, event: Value) {
        let (name, event) = self.numbered(event);
        self.script.word(&name, &event);
    }

    fn numbered(&mut self, mut event: Value) -> (String, Value) {
        event["sequence_number"] = self.number.into();
        self.number += 1;
        (event["type"].as_str().unwrap_or_default().to_owned(), event)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResponseState {
    Begun,
    Over,
}

fn response(reply: &Reply, state: ResponseState) -> Value {
    let over = state == ResponseState::Over;
    let incomplete = (over && reply.cut).then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": format!("resp_{}", reply.id),
        "object": "response",
        "created_at": reply.created,
        "status": if over { status(reply) } else { "in_progress" },
        "error": null,
        "incomplete_details": incomplete,
        "instructions": null,
        "max_output_tokens": reply.question.max_tokens,
        "metadata": {},
        "model": reply.question.model,
        "output": if over { json!([finished_item(reply)]) } else { json!([]) },
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": over.then(|| usage(reply)),
        "user": null,
    })
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (reply.question.prompt_tokens, reply.words.len());
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    })
}

fn finished_item(reply: &Reply) -> Value {
    item(reply, status(reply), &json!([part(&reply.text())]))
}

fn item(reply: &Reply, status: &str, content: &Value) -> Value {
    json!({
        "id": item_id(reply),
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn on_part(reply: &Reply, kind: &str, field: &str, value: Value) -> Value {
    let mut event =
        json!({"type": kind, "item_id": item_id(reply), "output_index": 0, "content_index": 0});
    event[field] = value;
    event
}

fn item_id(reply: &Reply) -> String {
    format!("msg_{}", reply.id)
}

fn status(reply: &Reply) -> &'static str {
    if reply.cut { "incomplete" } else { "completed" }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{events, whole},
        *,
    };

    #[tokio::test]
    async fn a_stream_is_numbered_and_ends_with_the_whole_answer() {
        let body = json!({"model": "d", "input": "hi", "stream": true, "max_output_tokens": 2});
        let events = events("/v1/responses", body).await;
        let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete",
        ];
        assert_eq!(names, expected);
        for (number, (name, data)) in events.iter().enumerate() {
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!((&data["type"], &data["sequence_number"]), (&json!(name), &json!(number)));
        }
        let last: Value = serde_json::from_str(&events[9].1).unwrap();
        assert_eq!(last["response"]["output"][0]["content"][0]["text"], "This is ");
    }

    #[tokio::test]
    async fn the_whole_answer_has_the_apis_shape() {
        let answer = whole("/v1/responses", json!({"model": "d", "input": "hi"})).await;
        assert_eq!(answer["status"], "completed");
        assert_eq!(answer["object"], "response");
        let total = answer["usage"]["total_tokens"].as_u64().unwrap();
        assert_eq!(answer["usage"]["output_tokens"].as_u64().unwrap() + 1, total);
    }
}
