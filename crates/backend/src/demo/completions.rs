//! `/v1/completions`.

use serde_json::{Value, json};

use super::{Reply, script::Script};

pub(super) fn whole(reply: &Reply) -> Value {
    let mut whole = envelope(reply, &choices(&reply.text(), Some(reply.finish_reason())));
    whole["usage"] = reply.usage();
    whole
}

pub(super) fn script(reply: &Reply) -> Script {
    let mut script = Script::default();
    for word in &reply.words {
        script.word("", &chunk(reply, &choices(word, None)));
    }
    script.event("", &chunk(reply, &choices("", Some(reply.finish_reason()))));
    reply.end_chunks(&mut script, envelope(reply, &json!([])));
    script
}

fn choices(text: &str, finish_reason: Option<&str>) -> Value {
    json!([{"text": text, "index": 0, "logprobs": null, "finish_reason": finish_reason}])
}

fn chunk(reply: &Reply, choices: &Value) -> Value {
    let mut chunk = envelope(reply, choices);
    if reply.question.include_usage {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn envelope(reply: &Reply, choices: &Value) -> Value {
    json!({
        "id": format!("cmpl-{}", reply.id),
        "object": "text_completion",
        "created": reply.created,
        "model": reply.question.model,
        "system_fingerprint": null,
        "choices": choices,
    })
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{chunks, whole},
        *,
    };

    fn body(stream: bool) -> Value {
        json!({
            "model": "warren-demo", "prompt": "hi", "stream": stream, "max_tokens": 3,
            "stream_options": {"include_usage": true},
        })
    }

    #[tokio::test]
    async fn both_forms_bring_the_same_words_and_usage() {
        let answer = whole("/v1/completions", body(false)).await;
        assert_eq!(answer["object"], "text_completion");
        assert_eq!(answer["choices"][0]["text"], "This is Warren's ");
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        let chunks = chunks("/v1/completions", body(true)).await;
        let words: String =
            chunks.iter().filter_map(|c| c["choices"][0]["text"].as_str()).collect();
        assert_eq!(words, "This is Warren's ");
        assert_eq!(chunks.last().unwrap()["usage"], answer["usage"]);
    }
}
