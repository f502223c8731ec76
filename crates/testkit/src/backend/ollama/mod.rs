//! An Ollama: its own API beside OpenAI's, with a context that cuts prompts in silence as the real one does.
//!
//! | Path | Answers |
//! | --- | --- |
//! | `/api/version`, `/api/tags`, `/api/ps`, `/v1/models` | as set here |
//! | `/api/show` | as set here; it is counted in [`MockOllama::shows`] and not as a request |
//! | `/api/chat` | the last message repeated, calls of tools, an example of a schema; a stream unless `stream` is `false` |
//! | any other | `hello`, as [`MockBackend`] does |
//!
//! The prompt's words beyond `options.num_ctx`, or else beyond the context of the loaded model, are not counted
//! and not read. `/api/chat` loads its model with that context.

mod answer;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::{MockBackend, Received, Reply};

/// The context of a model that is loaded by a request that names none.
pub const OLLAMA_CONTEXT: u64 = 4_096;

/// A model of an Ollama.
#[derive(Debug, Clone)]
#[must_use]
pub struct OllamaModel {
    pub name: String,
    pub digest: String,
    pub size: u64,
    pub capabilities: Vec<String>,
    /// The longest context that it was made for.
    pub context: u64,
    /// The context with which it is loaded, if it is.
    pub loaded: Option<u64>,
}

impl OllamaModel {
    /// A model of 8 billion parameters in Q4_K_M that completes, calls tools and thinks.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            digest: format!("sha256:{name}"),
            size: 5_225_388_164,
            capabilities: ["completion", "tools", "thinking"].map(str::to_owned).to_vec(),
            context: 131_072,
            loaded: None,
        }
    }

    pub fn able(self, capabilities: &[&str]) -> Self {
        let capabilities = capabilities.iter().map(|&name| name.to_owned()).collect();
        Self { capabilities, ..self }
    }

    pub fn loaded_with(self, context: u64) -> Self {
        Self { loaded: Some(context), ..self }
    }

    fn details() -> Value {
        json!({"parent_model": "", "format": "gguf", "family": "qwen3", "families": ["qwen3"],
            "parameter_size": "8.2B", "quantization_level": "Q4_K_M"})
    }

    fn tag(&self) -> Value {
        json!({"name": self.name, "model": self.name, "modified_at": "2025-05-01T10:00:00Z",
            "size": self.size, "digest": self.digest, "details": Self::details()})
    }

    fn show(&self) -> Value {
        let info = json!({"general.architecture": "qwen3", "qwen3.context_length": self.context,
            "general.parameter_count": 8_190_735_360_u64});
        json!({"modelfile": "", "parameters": "temperature 0.6", "template": "{{ .Prompt }}",
            "details": Self::details(), "model_info": info, "capabilities": self.capabilities})
    }

    fn running(&self, context: u64) -> Value {
        let mut running = self.tag();
        running["expires_at"] = json!("2025-05-01T10:05:00Z");
        running["size_vram"] = json!(self.size);
        running["context_length"] = json!(context);
        running
    }
}

#[derive(Debug, Default)]
struct State {
    models: Mutex<Vec<OllamaModel>>,
    calls: Mutex<Vec<(String, Value)>>,
    shows: AtomicUsize,
}

/// An Ollama on a port of its own. The requests that it got are those of its [`MockBackend`].
#[derive(Debug)]
pub struct MockOllama {
    pub backend: MockBackend,
    state: Arc<State>,
}

impl MockOllama {
    pub async fn start(models: Vec<OllamaModel>) -> Self {
        let state = Arc::new(State { models: Mutex::new(models), ..State::default() });
        let backend = MockBackend::start(&[]).await;
        let own = Arc::clone(&state);
        backend.tell_with(move |received| own.told(received));
        let own = Arc::clone(&state);
        backend.answer_with(move |received| own.reply(received));
        Self { backend, state }
    }

    pub fn url(&self) -> String {
        self.backend.url()
    }

    pub fn set_models(&self, models: Vec<OllamaModel>) {
        *self.state.models.lock().unwrap() = models;
    }

    /// It also calls this tool with these arguments, wherever the tool is offered.
    pub fn call(&self, tool: &str, arguments: Value) {
        self.state.calls.lock().unwrap().push((tool.to_owned(), arguments));
    }

    /// How often `/api/show` was asked.
    pub fn shows(&self) -> usize {
        self.state.shows.load(Ordering::SeqCst)
    }
}

impl State {
    /// The answer to what only asks how things are.
    fn told(&self, received: &Received) -> Option<Reply> {
        let models = self.models.lock().unwrap();
        let body = match (received.method.as_str(), received.target.as_str()) {
            ("GET", "/api/version") => json!({"version": "0.12.6"}),
            ("GET", "/api/tags") => {
                json!({"models": models.iter().map(OllamaModel::tag).collect::<Vec<_>>()})
            }
            ("GET", "/api/ps") => {
                let running = models.iter().filter_map(|model| Some(model.running(model.loaded?)));
                json!({"models": running.collect::<Vec<_>>()})
            }
            ("GET", "/v1/models") => {
                let item = |model: &OllamaModel| json!({"id": model.name, "object": "model", "created": 1, "owned_by": "library"});
                json!({"object": "list", "data": models.iter().map(item).collect::<Vec<_>>()})
            }
            ("POST", "/api/show") => {
                self.shows.fetch_add(1, Ordering::SeqCst);
                let asked = received.json();
                let model = models.iter().find(|model| asked["model"] == model.name.as_str());
                return Some(
                    model.map_or_else(|| missing(&asked), |model| Reply::json(200, &model.show())),
                );
            }
            _ => return None,
        };
        Some(Reply::json(200, &body))
    }

    fn reply(&self, received: &Received) -> Reply {
        if received.target != "/api/chat" {
            return Reply::completion("hello");
        }
        let asked = received.json();
        let mut models = self.models.lock().unwrap();
        let Some(model) = models.iter_mut().find(|model| asked["model"] == model.name.as_str())
        else {
            return missing(&asked);
        };
        let context =
            asked["options"]["num_ctx"].as_u64().or(model.loaded).unwrap_or(OLLAMA_CONTEXT);
        model.loaded = Some(context);
        let thinks = model.capabilities.iter().any(|name| name == "thinking");
        if asked["think"] == true && !thinks {
            let error = format!("\"{}\" does not support thinking", model.name);
            return Reply::json(400, &json!({"error": error}));
        }
        answer::to(&asked, context, thinks, &self.calls.lock().unwrap())
    }
}

fn missing(asked: &Value) -> Reply {
    let error = format!("model '{}' not found", asked["model"].as_str().unwrap_or_default());
    Reply::json(404, &json!({"error": error}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn it_tells_what_it_has_and_chats_within_its_context() {
        let ollama = MockOllama::start(vec![OllamaModel::new("m").loaded_with(3)]).await;
        let client = Client::new(ollama.backend.address());
        let tags = client.get("/api/tags").await.json();
        assert_eq!(tags["models"][0]["details"]["quantization_level"], "Q4_K_M");
        let show = client.post_json("/api/show", &json!({"model": "m"})).await.json();
        assert_eq!((&show["capabilities"][1], ollama.shows()), (&json!("tools"), 1));
        let ask = |context: Value| {
            json!({"model": "m", "stream": false, "options": context,
                "messages": [{"role": "user", "content": "one two three four"}]})
        };
        let cut = client.post_json("/api/chat", &ask(json!({}))).await.json();
        assert_eq!(cut["message"]["content"], "You said: two three four");
        let whole = client.post_json("/api/chat", &ask(json!({"num_ctx": 9}))).await.json();
        assert_eq!(whole["message"]["content"], "You said: one two three four");
        let ps = client.get("/api/ps").await.json();
        assert_eq!(ps["models"][0]["context_length"], 9);
        assert_eq!(client.post_json("/api/chat", &json!({"model": "x"})).await.status, 404);
        assert_eq!(ollama.backend.counts().started, 3);
    }

    #[tokio::test]
    async fn a_stream_is_lines_with_thoughts_and_calls() {
        let ollama = MockOllama::start(vec![OllamaModel::new("m")]).await;
        ollama.call("weather", json!({"city": "Bern"}));
        let client = Client::new(ollama.backend.address());
        let tools = json!([{"type": "function", "function": {"name": "weather"}}]);
        let ask = json!({"model": "m", "think": true, "tools": tools,
            "messages": [{"role": "user", "content": "hi"}]});
        let answer = client.post_json("/api/chat", &ask).await;
        assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
        let text = answer.text();
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["message"]["thinking"], "Let ");
        let last = &lines[lines.len() - 1];
        assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("stop")));
        let call = lines.iter().find(|line| line["message"]["tool_calls"].is_array()).unwrap();
        let function = &call["message"]["tool_calls"][0]["function"];
        assert_eq!(function["arguments"], json!({"city": "Bern"}));
    }
}
