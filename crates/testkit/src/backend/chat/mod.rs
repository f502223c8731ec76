//! A chat-only model server that understands what it is asked, and answers as a model might, but
//! always the same.
//!
//! The model's name says how it behaves:
//!
//! | Model | Answers |
//! | --- | --- |
//! | `chat` | as below |
//! | `reasoning` | likewise, after thinking aloud in `reasoning_content` |
//! | `endless` | some words, and then nothing more until the client leaves |
//! | `error-429` | that status; likewise 400, 401, 404 and 500 |
//!
//! The request says what: tools that the script is to call and that are offered are called, all at
//! once, until their results are there; then it tells the results. A JSON schema gets an object of
//! it. Everything else is repeated, with a count of the images. A word is a token: `max_tokens` and
//! `stop` cut the text, and the usage counts words.

mod render;
mod schema;

use serde_json::{Value, json};

pub(super) use self::schema::example;
use super::{MockBackend, Received, Reply};

/// The only path besides the list of models.
const CHAT: &str = "/v1/chat/completions";

pub const CHAT_MODELS: [&str; 8] = [
    "chat",
    "reasoning",
    "endless",
    "error-400",
    "error-401",
    "error-404",
    "error-429",
    "error-500",
];

#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ChatScript {
    calls: Vec<(String, Value)>,
}

impl ChatScript {
    pub fn new() -> Self {
        Self::default()
    }

    /// It also calls this tool with these arguments, wherever the tool is offered.
    pub fn calling(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push((tool.to_owned(), arguments));
        self
    }

    /// A backend that answers by this script at the one path.
    pub async fn start(self) -> MockBackend {
        let backend = MockBackend::start(&CHAT_MODELS).await;
        backend.answers_only(&[CHAT]);
        backend.answer_with(move |received| self.reply(received));
        backend
    }

    fn reply(&self, received: &Received) -> Reply {
        let request = received.json();
        let model = request["model"].as_str().unwrap_or_default();
        if let Some(status) = model.strip_prefix("error-") {
            return failure(status.parse().unwrap_or(500));
        }
        let said = self.answer(&request);
        match (request["stream"] == true, model == "endless") {
            (true, true) => render::begun(&request, &said),
            (true, false) => render::streamed(&request, &said),
            (false, true) => Reply::hang(),
            (false, false) => render::whole(&request, &said),
        }
    }

    fn answer(&self, request: &Value) -> ChatAnswer {
        let thinks = request["model"] == "reasoning";
        let mut said = ChatAnswer {
            thought: thinks.then(|| "Let me think about it.".to_owned()),
            ..ChatAnswer::default()
        };
        let calls = self.calls(request);
        if calls.is_empty() {
            let (text, finish) = cut(request, &text(request));
            (said.text, said.finish) = (text, finish);
        } else {
            (said.calls, said.finish) = (calls, "tool_calls");
        }
        said
    }

    /// The told tools among the offered ones, unless their results are there already.
    fn calls(&self, request: &Value) -> Vec<Call> {
        if last_message(request)["role"] == "tool" {
            return Vec::new();
        }
        let told = self.calls.iter().filter(|(name, _)| may_call(request, name));
        let most = if request["parallel_tool_calls"] == false { 1 } else { usize::MAX };
        let call = |(n, (name, arguments)): (usize, &(String, Value))| Call {
            id: format!("call_{n}"),
            name: name.clone(),
            arguments: arguments.to_string(),
        };
        told.take(most).enumerate().map(call).collect()
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ChatAnswer {
    thought: Option<String>,
    text: String,
    calls: Vec<Call>,
    finish: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    id: String,
    name: String,
    /// JSON, as text.
    arguments: String,
}

fn failure(status: u16) -> Reply {
    let message = format!("the backend says {status}");
    Reply::json(status, &json!({"error": {"message": message, "type": "mock", "code": null}}))
}

fn may_call(request: &Value, name: &str) -> bool {
    let offered = request["tools"].as_array().into_iter().flatten();
    let is_offered = offered.filter(|tool| tool["function"]["name"] == name).count() > 0;
    let choice = &request["tool_choice"];
    let named = choice["function"]["name"].as_str();
    is_offered && choice != "none" && named.is_none_or(|named| named == name)
}

fn text(request: &Value) -> String {
    let schema = &request["response_format"]["json_schema"]["schema"];
    if schema.is_object() {
        return schema::example(schema).to_string();
    }
    if last_message(request)["role"] == "tool" {
        return format!("The tools said: {}", tool_results(request).join("; "));
    }
    let asked = last_message(request);
    match images(asked) {
        0 => format!("You said: {}", words_of(asked)),
        images => format!("You said: {} (images: {images})", words_of(asked)),
    }
}

/// The text up to `stop` and `max_tokens`, and why it ends there.
fn cut(request: &Value, text: &str) -> (String, &'static str) {
    let stop = &request["stop"];
    let stops = stop.as_array().into_iter().flatten().chain([stop]).filter_map(Value::as_str);
    let end = stops.filter_map(|stop| text.find(stop)).min().unwrap_or(text.len());
    let most = ["max_completion_tokens", "max_tokens"].map(|name| request[name].as_u64());
    let most = most.into_iter().flatten().min().unwrap_or(u64::MAX);
    let words = text[..end].split_inclusive(' ');
    let kept: String = words.take(usize::try_from(most).unwrap_or(usize::MAX)).collect();
    let finish = if kept.len() < end { "length" } else { "stop" };
    (kept, finish)
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn last_message(request: &Value) -> &Value {
    messages(request).last().unwrap_or(&Value::Null)
}

/// The results since the model called, in order.
fn tool_results(request: &Value) -> Vec<String> {
    let since = messages(request).rsplit(|message| message["role"] != "tool").next();
    since.unwrap_or_default().iter().map(words_of).collect()
}

fn words_of(message: &Value) -> String {
    let content = &message["content"];
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(parts).collect::<Vec<_>>().join(" ")
}

fn images(message: &Value) -> usize {
    let parts = message["content"].as_array().into_iter().flatten();
    parts.filter(|part| part["image_url"]["url"].is_string()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    fn ask(content: &Value) -> Value {
        json!({"model": "chat", "messages": [{"role": "user", "content": content}]})
    }

    fn with(mut request: Value, name: &str, value: Value) -> Value {
        request[name] = value;
        request
    }

    fn tools(names: &[&str]) -> Value {
        names.iter().map(|name| json!({"type": "function", "function": {"name": name}})).collect()
    }

    fn said(request: &Value) -> ChatAnswer {
        let script = ChatScript::new().calling("a", json!({"x": 1})).calling("b", json!({}));
        script.answer(request)
    }

    fn called(request: &Value) -> Vec<String> {
        said(request).calls.into_iter().map(|call| call.name).collect()
    }

    #[test]
    fn text_is_repeated_and_images_are_counted() {
        assert_eq!(said(&ask(&json!("hi you"))).text, "You said: hi you");
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}});
        let parts = json!([{"type": "text", "text": "look"}, image]);
        assert_eq!(said(&ask(&parts)).text, "You said: look (images: 1)");
    }

    #[test]
    fn only_tools_that_are_offered_and_chosen_are_called() {
        let asked = with(ask(&json!("hi")), "tools", tools(&["a", "b", "c"]));
        assert_eq!(called(&asked), ["a", "b"]);
        assert!(called(&ask(&json!("hi"))).is_empty());
        assert!(called(&with(asked.clone(), "tool_choice", json!("none"))).is_empty());
        let choice = json!({"type": "function", "function": {"name": "b"}});
        assert_eq!(called(&with(asked.clone(), "tool_choice", choice)), ["b"]);
        assert_eq!(called(&with(asked, "parallel_tool_calls", json!(false))), ["a"]);
    }

    #[test]
    fn results_end_the_calling_and_are_told() {
        let mut asked = with(ask(&json!("hi")), "tools", tools(&["a", "b"]));
        let result = |text| json!({"role": "tool", "tool_call_id": "call_0", "content": text});
        let rest = [json!({"role": "assistant"}), result("one"), result("two")];
        asked["messages"].as_array_mut().unwrap().extend(rest);
        let said = said(&asked);
        assert_eq!((said.text.as_str(), said.calls), ("The tools said: one; two", vec![]));
    }

    #[test]
    fn limits_and_stops_cut_the_text() {
        let asked = with(ask(&json!("a b c")), "max_tokens", json!(3));
        assert_eq!(cut(&asked, &text(&asked)), ("You said: a ".to_owned(), "length"));
        let asked = with(ask(&json!("a b c")), "stop", json!([" b"]));
        assert_eq!(cut(&asked, &text(&asked)), ("You said: a".to_owned(), "stop"));
    }

    #[tokio::test]
    async fn the_model_decides_and_there_is_only_chat() {
        let backend = ChatScript::new().start().await;
        let client = Client::new(backend.address());
        let status = async |path, model: &str| {
            let asked = with(ask(&json!("")), "model", json!(model));
            client.post_json(path, &asked).await.status
        };
        assert_eq!(status(CHAT, "error-429").await, 429);
        assert_eq!(status("/v1/messages", "chat").await, 404);
        let endless = with(with(ask(&json!("")), "model", json!("endless")), "stream", json!(true));
        let mut answer = client.post(CHAT, &endless).start().await;
        answer.next_chunk().await.expect("a word");
        drop(answer);
        backend.aborted(1).await;
    }
}
