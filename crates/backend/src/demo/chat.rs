//! `/v1/chat/completions`.

use serde_json::{Value, json};

use super::{Reply, script::Script};

pub(super) fn whole(reply: &Reply) -> Value {
    json!({
        "id": id(reply),
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.question.model,
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": reply.text(), "refusal": null},
            "logprobs": null,
            "finish_reason": reply.finish_reason(),
        }],
        "usage": reply.usage(),
        "system_fingerprint": null,
    })
}

pub(super) fn script(reply: &Reply) -> Script {
    let mut script = Script::default();
    let first = json!({"role": "assistant", "content": "", "refusal": null});
    script.event("", &chunk(reply, &first, None));
    for word in &reply.words {
        script.word("", &chunk(reply, &json!({"content": word}), None));
    }
    script.event("", &chunk(reply, &json!({}), Some(reply.finish_reason())));
    reply.end_chunks(&mut script, envelope(reply, &json!([])));
    script
}

fn chunk(reply: &Reply, delta: &Value, finish_reason: Option<&str>) -> Value {
    envelope(
        reply,
        &json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]),
    )
}

fn envelope(reply: &Reply, choices: &Value) -> Value {
    let mut envelope = json!({
        "id": id(reply),
        "object": "chat.completion.chunk",
        "created": reply.created,
        "model": reply.question.model,
        "system_fingerprint": null,
        "choices": choices,
    });
    if reply.question.include_usage {
        envelope["usage"] = Value::Null;
    }
    envelope
}

fn id(reply: &Reply) -> String {
    format!("chatcmpl-{}", reply.id)
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{chunks, events, whole},
        *,
    };

    const PATH: &str = "/v1/chat/completions";

    fn body(stream: bool, usage: bool) -> Value {
        json!({
            "model": "warren-demo", "messages": [{"role": "user", "content": "hi"}],
            "stream": stream, "stream_options": {"include_usage": usage}, "max_tokens": 3,
        })
    }

    #[tokio::test]
    async fn the_whole_answer_has_the_apis_shape() {
        let answer = whole(PATH, body(false, false)).await;
        assert_eq!(answer["object"], "chat.completion");
        let choice = &answer["choices"][0];
        assert_eq!(choice["message"]["content"], "This is Warren's ");
        assert_eq!(choice["finish_reason"], "length");
        assert_eq!(answer["usage"]["completion_tokens"], 3);
        assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));
    }

    #[tokio::test]
    async fn a_stream_brings_the_same_words_and_the_usage_when_asked() {
        let chunks = chunks(PATH, body(true, true)).await;
        let words: String =
            chunks.iter().filter_map(|c| c["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(words, "This is Warren's ");
        let last = chunks.last().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["completion_tokens"], 3);
        assert_eq!(chunks[0]["usage"], Value::Null);
        assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "length");
    }

    #[tokio::test]
    async fn without_being_asked_it_sends_no_usage() {
        let events = events(PATH, body(true, false)).await;
        assert!(events.iter().all(|(name, data)| name.is_empty() && !data.contains("usage")));
    }
}
