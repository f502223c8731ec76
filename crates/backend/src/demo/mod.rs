//! A backend without a model, for the first minute with Warren.
//!
//! It answers in the exact shapes of the APIs with a fixed text that says that it is a demo. The
//! same prompt always gets the same words. It can continue an answer that has begun.
//!
//! - `question`: a request in any of the APIs
//! - `text`: the words
//! - `script`: an answer as it is sent, and its pace
//! - `chat`, `completions`, `messages`, `responses`: one API each

mod chat;
mod completions;
mod messages;
mod question;
mod responses;
mod script;
mod text;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use base::{Continuation, Endpoint, Endpoints, FactsByModel, ModelFacts};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

use crate::exchange::{Answer, AnswerBody, BackendRequest};
pub use question::MAX_ASK;
use question::{Api, Question};
pub use script::DemoBody;
use script::Script;

/// The name of the demo model.
pub const DEMO_MODEL: &str = "warren-demo";

/// How the demo behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoConfig {
    /// Words per second of a stream; 0: as fast as the client reads.
    pub tokens_per_second: u32,
    /// How many requests it serves at once; 0 counts as 1.
    pub max_concurrent: u32,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self { tokens_per_second: 30, max_concurrent: 16 }
    }
}

/// The demo: answers about Warren itself, with no model behind them.
#[derive(Debug)]
pub struct DemoBackend {
    config: DemoConfig,
    answers: AtomicU64,
}

/// An answer in the making, whatever the API.
struct Reply {
    /// The part of its ids that makes them unique.
    id: String,
    /// Seconds since 1970.
    created: u64,
    question: Question,
    /// The words, each with the space after it.
    words: Vec<&'static str>,
    /// Whether it was cut at `max_tokens`.
    cut: bool,
}

impl DemoBackend {
    /// A demo with this configuration.
    pub fn new(config: DemoConfig) -> Self {
        Self { config, answers: AtomicU64::new(0) }
    }

    /// The only model there is.
    pub fn models(&self) -> Vec<String> {
        vec![DEMO_MODEL.to_owned()]
    }

    /// The facts about its model: it can continue answers that have begun.
    pub fn facts(&self) -> FactsByModel {
        let continuation = Some(Continuation::LastMessage);
        [(DEMO_MODEL.to_owned(), ModelFacts { continuation, ..ModelFacts::default() })].into()
    }

    /// The APIs that it answers in.
    pub fn endpoints(&self) -> Endpoints {
        Endpoint::ALL.into_iter().filter(|endpoint| Api::of(*endpoint).is_some()).collect()
    }

    /// Answers a request. Never fails, because there is no server behind it.
    pub fn send(&self, ask: &BackendRequest) -> Answer {
        let path = ask.path_and_query.split('?').next().unwrap_or_default();
        if path == "/v1/models" {
            return Answer::json(StatusCode::OK, model_list());
        }
        let endpoint = Endpoint::of_path(path);
        let Some(api) = endpoint.and_then(Api::of) else {
            return not_found(match endpoint {
                Some(Endpoint::Embeddings) => "the demo model has no embeddings",
                _ => "the demo model has no such path",
            });
        };
        match Question::read(api, &ask.body) {
            Ok(question) => self.reply(question).answer(self.config.tokens_per_second),
            Err(problem) => Answer::json(StatusCode::BAD_REQUEST, bad_request(api, &problem)),
        }
    }

    fn reply(&self, question: Question) -> Reply {
        let all = text::rest(&question.prompt, &question.begun);
        let most = question.max_tokens.unwrap_or(usize::MAX);
        let cut = most < all.len();
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        let now = base::since_1970(SystemTime::now());
        let hash = text::hash(&question.prompt);
        let id = format!("{:08x}{:04x}{hash:016x}", now.as_secs(), number & 0xffff);
        let words = all.into_iter().take(most).collect();
        Reply { id, created: now.as_secs(), question, words, cut }
    }
}

impl Reply {
    fn answer(&self, pace: u32) -> Answer {
        if self.question.stream {
            return stream(self.script(), pace);
        }
        let whole = match self.question.api {
            Api::Chat => chat::whole(self),
            Api::Completions => completions::whole(self),
            Api::Messages => messages::whole(self),
            Api::Responses => responses::whole(self),
        };
        Answer::json(StatusCode::OK, whole.to_string())
    }

    fn script(&self) -> Script {
        match self.question.api {
            Api::Chat => chat::script(self),
            Api::Completions => completions::script(self),
            Api::Messages => messages::script(self),
            Api::Responses => responses::script(self),
        }
    }

    fn text(&self) -> String {
        self.words.concat()
    }

    /// Why the answer has ended, in the words of OpenAI's older APIs.
    fn finish_reason(&self) -> &'static str {
        if self.cut { "length" } else { "stop" }
    }

    /// The usage of chat completions and completions.
    fn usage(&self) -> Value {
        let (prompt, answer) = (self.question.prompt_tokens, self.words.len());
        serde_json::json!({
            "prompt_tokens": prompt,
            "completion_tokens": answer,
            "total_tokens": prompt + answer,
        })
    }

    /// Ends a stream of chat completions or completions. Its usage, if it was asked for, comes in a
    /// chunk without choices.
    fn end_chunks(&self, script: &mut Script, mut without_choices: Value) {
        if self.question.include_usage {
            without_choices["usage"] = self.usage();
            script.event("", &without_choices);
        }
        script.done();
    }
}

fn stream(script: Script, pace: u32) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Answer { status: StatusCode::OK, headers, body: AnswerBody::demo(script.play(pace)) }
}

fn model_list() -> String {
    protocol::openai::model_list([(DEMO_MODEL, 0, "warren-demo")])
}

fn not_found(message: &str) -> Answer {
    let kind = "invalid_request_error";
    Answer::json(StatusCode::NOT_FOUND, protocol::openai::error_body(message, kind, None, None))
}

fn bad_request(api: Api, problem: &str) -> String {
    match api {
        Api::Messages => protocol::anthropic::error_body("invalid_request_error", problem, ""),
        _ => protocol::openai::error_body(problem, "invalid_request_error", None, None),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    pub(super) fn ask(path: &str, body: &Value) -> BackendRequest {
        let body = vec![Bytes::from(body.to_string())];
        BackendRequest { path_and_query: path.to_owned(), body, ..BackendRequest::default() }
    }

    pub(super) async fn answer(path: &str, body: Value) -> (StatusCode, String) {
        let demo = DemoBackend::new(DemoConfig { tokens_per_second: 0, max_concurrent: 1 });
        let mut answer = demo.send(&ask(path, &body));
        let mut text = String::new();
        while let Some(bytes) = answer.body.next().await {
            text.push_str(str::from_utf8(&bytes.unwrap()).unwrap());
        }
        (answer.status, text)
    }

    pub(super) async fn whole(path: &str, body: Value) -> Value {
        let (status, text) = answer(path, body).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The events of a stream: name, or nothing, and data.
    pub(super) async fn events(path: &str, body: Value) -> Vec<(String, String)> {
        let (status, text) = answer(path, body).await;
        assert_eq!(status, 200, "{text}");
        let events = text.strip_suffix("\n\n").unwrap().split("\n\n");
        let read = |event: &str| match event.strip_prefix("event: ") {
            Some(named) => {
                let (name, data) = named.split_once("\ndata: ").unwrap();
                (name.to_owned(), data.to_owned())
            }
            None => (String::new(), event.strip_prefix("data: ").unwrap().to_owned()),
        };
        events.map(read).collect()
    }

    /// The chunks of a stream of chat completions or completions, up to its last word.
    pub(super) async fn chunks(path: &str, body: Value) -> Vec<Value> {
        let mut events = events(path, body).await;
        assert_eq!(events.pop().unwrap().1, "[DONE]");
        events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
    }

    #[tokio::test]
    async fn says_what_it_cannot_do() {
        let (status, text) = answer("/v1/embeddings", Value::Null).await;
        assert_eq!(status, 404);
        assert!(text.contains("the demo model has no embeddings"), "{text}");
        let (status, text) = answer("/v1/messages", Value::Null).await;
        assert_eq!(status, 400);
        assert!(text.starts_with(r#"{"type":"error""#), "{text}");
    }

    #[tokio::test]
    async fn answers_at_the_endpoints_that_it_tells_and_at_no_other() {
        let told = DemoBackend::new(DemoConfig::default()).endpoints();
        for endpoint in Endpoint::ALL {
            let body = serde_json::json!({"model": DEMO_MODEL});
            let (status, _) = answer(endpoint.path(), body).await;
            assert_eq!(status == 200, told.contains(endpoint), "{endpoint}");
        }
        assert_eq!(told.iter().count(), 4);
    }

    #[tokio::test]
    async fn lists_its_model_and_says_that_it_is_a_demo() {
        let list = whole("/v1/models", Value::Null).await;
        assert_eq!(list["data"][0]["id"], DEMO_MODEL);
        let body = serde_json::json!({"model": DEMO_MODEL, "messages": []});
        let first = whole("/v1/chat/completions?a=b", body.clone()).await;
        let text = first["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(text.starts_with("This is Warren's built-in demo"), "{text}");
        let again = whole("/v1/chat/completions", body).await;
        assert_eq!(again["choices"], first["choices"]);
    }

    /// The content of every stream: the text of its deltas.
    fn text_of(events: &[(String, String)]) -> String {
        let places = ["/choices/0/delta/content", "/choices/0/text", "/delta/text", "/delta"];
        let piece = |data: &str| {
            let event: Value = serde_json::from_str(data).ok()?;
            places.iter().find_map(|place| Some(event.pointer(place)?.as_str()?.to_owned()))
        };
        events.iter().filter_map(|(_, data)| piece(data)).collect()
    }

    #[tokio::test]
    async fn it_goes_on_with_what_it_has_begun_in_every_api() {
        let user = serde_json::json!({"role": "user", "content": "hi"});
        let with = |begun: &str| {
            let begun = serde_json::json!({"role": "assistant", "content": begun});
            Value::from(vec![user.clone(), begun])
        };
        for (path, field) in [
            ("/v1/chat/completions", "messages"),
            ("/v1/messages", "messages"),
            ("/v1/responses", "input"),
            ("/v1/completions", "prompt"),
        ] {
            let ask = |said: Value| {
                let mut body = serde_json::json!({"model": DEMO_MODEL, "stream": true});
                body[field] = said;
                body
            };
            let first =
                if field == "prompt" { "hi".into() } else { Value::from(vec![user.clone()]) };
            let whole = text_of(&events(path, ask(first)).await);
            let cut = whole.find("No model").unwrap();
            let begun = match field {
                "prompt" => format!("hi{}", &whole[..cut]).into(),
                _ => with(&whole[..cut]),
            };
            let rest = text_of(&events(path, ask(begun)).await);
            assert_eq!(rest, whole[cut..], "{path}");
            let other = match field {
                "prompt" => "hiSure: ".into(),
                _ => with("Sure: "),
            };
            let other = text_of(&events(path, ask(other)).await);
            assert!(other.starts_with("This is Warren's"), "{path}: {other}");
        }
    }

    #[test]
    fn no_two_answers_have_the_same_id() {
        let demo = DemoBackend::new(DemoConfig::default());
        let body = [Bytes::from_static(br#"{"model":"m","prompt":"p"}"#)];
        let reply = || demo.reply(Question::read(Api::Completions, &body).unwrap());
        assert_ne!(reply().id, reply().id);
    }
}
