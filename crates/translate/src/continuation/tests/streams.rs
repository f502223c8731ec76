//! Answers as providers stream them.

use base::Endpoint;
use serde_json::{Value, json};

/// An answer, or the rest of one.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// The number that the provider makes its ids of.
    pub(super) id: &'static str,
    /// The thoughts and the text that were sent along, which some providers repeat where they tell everything.
    pub(super) before: (String, String),
    pub(super) thoughts: Vec<String>,
    pub(super) words: Vec<String>,
    /// Tokens of the prompt.
    pub(super) prompt: usize,
    /// Whether the events of Responses have numbers.
    pub(super) numbered: bool,
}

impl Said {
    /// The tokens of the answer.
    fn tokens(&self) -> usize {
        self.thoughts.len() + self.words.len()
    }

    /// The events of the answer.
    pub(super) fn events(&self, endpoint: Endpoint) -> Vec<String> {
        match endpoint {
            Endpoint::ChatCompletions => self.chat(),
            Endpoint::Completions => self.completions(),
            Endpoint::Messages => self.messages(),
            Endpoint::Responses => self.responses(),
            other => panic!("{other} is not continued"),
        }
    }

    fn chat(&self) -> Vec<String> {
        let chunk = |choices: Value| {
            json!({"id": self.id, "object": "chat.completion.chunk", "created": self.id.len(), "model": "m",
                "choices": choices})
        };
        let delta = |delta: Value, finish: Value| {
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]))
        };
        let mut chunks = vec![delta(json!({"role": "assistant", "content": null}), Value::Null)];
        let thought = |word| delta(json!({"reasoning_content": word}), Value::Null);
        chunks.extend(self.thoughts.iter().map(thought));
        chunks.extend(self.words.iter().map(|word| delta(json!({"content": word}), Value::Null)));
        chunks.push(delta(json!({}), "stop".into()));
        let mut usage = chunk(json!([]));
        usage["usage"] = self.usage();
        chunks.push(usage);
        chunks.iter().map(data).chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    fn completions(&self) -> Vec<String> {
        let chunk = |text: &str, finish: Value| {
            json!({"id": self.id, "object": "text_completion", "created": self.id.len(), "model": "m",
                "choices": [{"index": 0, "text": text, "finish_reason": finish}]})
        };
        let mut chunks: Vec<Value> =
            self.words.iter().map(|word| chunk(word, Value::Null)).collect();
        let mut last = chunk("", "stop".into());
        last["usage"] = self.usage();
        chunks.push(last);
        chunks.iter().map(data).chain(["data: [DONE]\n\n".to_owned()]).collect()
    }

    fn usage(&self) -> Value {
        let (prompt, answer) = (self.prompt, self.tokens());
        json!({"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer})
    }

    fn messages(&self) -> Vec<String> {
        let mut events =
            vec![json!({"type": "message_start", "message": {"id": self.id, "type": "message",
            "role": "assistant", "content": [], "usage": {"input_tokens": self.prompt}}})];
        let kinds = [
            (
                &self.thoughts,
                json!({"type": "thinking", "thinking": ""}),
                "thinking_delta",
                "thinking",
            ),
            (&self.words, json!({"type": "text", "text": ""}), "text_delta", "text"),
        ];
        let said = kinds.into_iter().filter(|(words, ..)| !words.is_empty());
        for (index, (words, block, kind, field)) in said.enumerate() {
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": block}),
            );
            events.extend(words.iter().map(|word| {
                json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: word}})
            }));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let usage = json!({"output_tokens": self.tokens()});
        let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
        events.push(json!({"type": "message_stop"}));
        events.iter().map(named).collect()
    }

    fn responses(&self) -> Vec<String> {
        let mut events = Vec::new();
        let response = json!({"id": format!("resp_{}", self.id), "object": "response", "status": "in_progress"});
        for kind in ["response.created", "response.in_progress"] {
            events.push(json!({"type": kind, "response": response}));
        }
        let mut output = Vec::new();
        let kinds = [
            ("rs", &self.before.0, &self.thoughts, "reasoning", "reasoning_text"),
            ("msg", &self.before.1, &self.words, "message", "output_text"),
        ];
        for (prefix, before, words, kind, part) in kinds {
            if !words.is_empty() {
                let id = format!("{prefix}_{}", self.id);
                output.push(self.item(&id, before, words, (kind, part), output.len(), &mut events));
            }
        }
        let mut response = response;
        response["status"] = "completed".into();
        response["output"] = output.into();
        let (input, answer) = (self.prompt, self.tokens());
        response["usage"] =
            json!({"input_tokens": input, "output_tokens": answer, "total_tokens": input + answer});
        events.push(json!({"type": "response.completed", "response": response}));
        for (number, event) in events.iter_mut().enumerate() {
            match event.as_object_mut() {
                Some(event) if self.numbered => {
                    drop(event.insert("sequence_number".to_owned(), number.into()));
                }
                Some(event) => ["output_index", "content_index"]
                    .iter()
                    .for_each(|name| drop(event.remove(*name))),
                None => {}
            }
        }
        events.iter().map(named).collect()
    }

    fn item(
        &self,
        id: &str,
        before: &str,
        words: &[String],
        (kind, part): (&str, &str),
        place: usize,
        events: &mut Vec<Value>,
    ) -> Value {
        let of_part = |kind: String, field: &str, value: Value| json!({"type": kind, "item_id": id, "output_index": place, "content_index": 0, field: value});
        let piece = |text: &str| match part {
            "output_text" => json!({"type": part, "text": text, "annotations": [], "logprobs": []}),
            _ => json!({"type": part, "text": text}),
        };
        let item = |status: &str, content: Value| {
            let mut item = json!({"type": kind, "id": id, "status": status, "content": content});
            match kind {
                "message" => item["role"] = "assistant".into(),
                _ => item["summary"] = json!([]),
            }
            item
        };
        let of_item =
            |kind: &str, item: Value| json!({"type": kind, "output_index": place, "item": item});
        events.push(of_item("response.output_item.added", item("in_progress", json!([]))));
        events.push(of_part("response.content_part.added".to_owned(), "part", piece("")));
        let name = format!("response.{part}.delta");
        events
            .extend(words.iter().map(|word| of_part(name.clone(), "delta", word.as_str().into())));
        let whole = format!("{before}{}", words.concat());
        events.push(of_part(format!("response.{part}.done"), "text", whole.as_str().into()));
        events.push(of_part("response.content_part.done".to_owned(), "part", piece(&whole)));
        let done = item("completed", json!([piece(&whole)]));
        events.push(of_item("response.output_item.done", done.clone()));
        done
    }
}

fn data(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn named(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// The data of the events of a stream, `[DONE]` as text. Ids of items are those of no provider: an item has that of the
/// provider that began it.
pub(super) fn read(stream: &[u8]) -> Vec<Value> {
    let mut text = str::from_utf8(stream).unwrap().to_owned();
    for kind in ["rs", "msg"] {
        let ids = ["first", "second", "third", "fourth"].map(|id| format!("\"{kind}_{id}\""));
        let mut there: Vec<&String> = ids.iter().filter(|id| text.contains(*id)).collect();
        assert!(there.len() < 2, "one item has several ids: {text}");
        if let Some(id) = there.pop() {
            text = text.replace(id, &format!("\"{kind}\""));
        }
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into())).collect()
}
