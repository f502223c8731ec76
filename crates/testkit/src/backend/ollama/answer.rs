//! The answer of an Ollama's `/api/chat`, whole or in lines.

use serde_json::{Value, json};

use crate::backend::{Gate, Reply, chat::example};

const THOUGHT: &str = "Let me think about it.";

/// The answer of a model with this context.
pub(super) fn to(asked: &Value, context: u64, thinks: bool, calls: &[(String, Value)]) -> Reply {
    let said = Said::to(asked, context, thinks, calls);
    if asked["stream"] == false {
        let mut message = json!({"role": "assistant", "content": said.text});
        if let Some(thought) = said.thought {
            message["thinking"] = json!(thought);
        }
        if !said.calls.is_empty() {
            message["tool_calls"] = json!(said.calls);
        }
        return Reply::json(200, &said.last(asked, &message));
    }
    let kind = [("content-type", "application/x-ndjson")];
    Reply::stream_with(200, &kind, said.lines(asked), &Gate::opened())
}

struct Said {
    thought: Option<&'static str>,
    text: String,
    calls: Vec<Value>,
    read: u64,
    written: u64,
    finish: &'static str,
}

impl Said {
    fn to(asked: &Value, context: u64, thinks: bool, calls: &[(String, Value)]) -> Self {
        let (words, read) = words(asked, context);
        let last = asked["messages"].as_array().and_then(|all| all.last()).unwrap_or(&Value::Null);
        let calls = if last["role"] == "tool" { Vec::new() } else { called(asked, calls) };
        let images = last["images"].as_array().map_or(0, Vec::len);
        let text = match () {
            () if !calls.is_empty() => String::new(),
            () if asked["format"].is_object() => example(&asked["format"]).to_string(),
            () if images > 0 => format!("You said: {words} (images: {images})"),
            () => format!("You said: {words}"),
        };
        let most = asked["options"]["num_predict"].as_u64().unwrap_or(u64::MAX);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let kept: String = text.split_inclusive(' ').take(most).collect();
        let finish = if kept.len() < text.len() { "length" } else { "stop" };
        let written = kept.split_whitespace().count() as u64;
        let thought = (thinks && asked["think"] == true).then_some(THOUGHT);
        Self { thought, text: kept, calls, read, written, finish }
    }

    fn lines(&self, asked: &Value) -> Vec<String> {
        let line = |message: Value| {
            let line = json!({"model": asked["model"], "created_at": "2025-05-01T10:00:00Z", "message": message, "done": false});
            format!("{line}\n")
        };
        let message = |name: &str, value: Value| {
            let mut message = json!({"role": "assistant", "content": ""});
            message[name] = value;
            message
        };
        let thoughts = self.thought.unwrap_or_default().split_inclusive(' ');
        let thoughts = thoughts.map(|word| line(message("thinking", json!(word))));
        let text = self.text.split_inclusive(' ').map(|word| line(message("content", json!(word))));
        let calls = self.calls.iter().map(|call| line(message("tool_calls", json!([call]))));
        let end = format!("{}\n", self.last(asked, &json!({"role": "assistant", "content": ""})));
        thoughts.chain(text).chain(calls).chain([end]).collect()
    }

    fn last(&self, asked: &Value, message: &Value) -> Value {
        json!({"model": asked["model"], "created_at": "2025-05-01T10:00:00Z", "message": message,
            "done": true, "done_reason": self.finish, "total_duration": 5, "load_duration": 1,
            "prompt_eval_count": self.read, "prompt_eval_duration": 1,
            "eval_count": self.written, "eval_duration": 1})
    }
}

/// The words of the last message that are within the context, and how many words of the prompt are.
fn words(asked: &Value, context: u64) -> (String, u64) {
    let messages = asked["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = messages.iter().filter_map(|message| message["content"].as_str());
    let count: usize = texts.map(|text| text.split_whitespace().count()).sum();
    let context = usize::try_from(context).unwrap_or(usize::MAX);
    let last = messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default();
    let mut kept: Vec<&str> = last.split_whitespace().rev().take(context).collect();
    kept.reverse();
    (kept.join(" "), count.min(context) as u64)
}

fn called(asked: &Value, calls: &[(String, Value)]) -> Vec<Value> {
    let offered = asked["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_offered = |name: &str| offered.iter().any(|tool| tool["function"]["name"] == name);
    let told = calls.iter().filter(|(name, _)| is_offered(name));
    let call = |(index, (name, arguments)): (usize, &(String, Value))| json!({"function": {"index": index, "name": name, "arguments": arguments}});
    told.enumerate().map(call).collect()
}
