//! `/v1/messages`.

use serde_json::{Value, json};

use super::{Reply, script::Script};

pub(super) fn whole(reply: &Reply) -> Value {
    let content = json!([{"type": "text", "text": reply.text()}]);
    message(reply, &content, Some(stop_reason(reply)), reply.words.len())
}

pub(super) fn script(reply: &Reply) -> Script {
    let mut script = Script::default();
    let mut send = |data: Value| script.event(data["type"].as_str().unwrap_or_default(), &data);
    let message = message(reply, &json!([]), None, 0);
    send(json!({"type": "message_start", "message": message}));
    let block = json!({"type": "text", "text": ""});
    send(json!({"type": "content_block_start", "index": 0, "content_block": block}));
    send(json!({"type": "ping"}));
    for word in &reply.words {
        let delta = json!({"type": "text_delta", "text": word});
        let event = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        script.word("content_block_delta", &event);
    }
    end(reply, &mut script);
    script
}

fn end(reply: &Reply, script: &mut Script) {
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let usage = json!({"output_tokens": reply.words.len()});
    let message_delta = json!({"type": "message_delta", "delta": delta, "usage": usage});
    script.event("content_block_stop", &json!({"type": "content_block_stop", "index": 0}));
    script.event("message_delta", &message_delta);
    script.event("message_stop", &json!({"type": "message_stop"}));
}

fn message(reply: &Reply, content: &Value, stop: Option<&str>, output_tokens: usize) -> Value {
    json!({
        "id": format!("msg_{}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.question.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": {
            "input_tokens": reply.question.prompt_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
        },
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.cut { "max_tokens" } else { "end_turn" }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{events, whole},
        *,
    };

    fn body(stream: bool, max_tokens: usize) -> Value {
        let messages = json!([{"role": "user", "content": "hi"}]);
        json!({"model": "d", "messages": messages, "stream": stream, "max_tokens": max_tokens})
    }

    #[tokio::test]
    async fn the_whole_answer_has_the_apis_shape() {
        let answer = whole("/v1/messages", body(false, 9999)).await;
        assert_eq!(
            (&answer["type"], &answer["stop_reason"]),
            (&json!("message"), &json!("end_turn"))
        );
        assert!(answer["usage"]["output_tokens"].as_u64().unwrap() > 50);
    }

    #[tokio::test]
    async fn a_stream_has_every_event_once_and_in_order() {
        let events = events("/v1/messages", body(true, 2)).await;
        let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(names, expected);
        for (name, data) in &events {
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["type"], name.as_str());
        }
        let delta: Value = serde_json::from_str(&events[6].1).unwrap();
        assert_eq!(delta["delta"]["stop_reason"], "max_tokens");
        assert_eq!(delta["usage"]["output_tokens"], 2);
    }
}
