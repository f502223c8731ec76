//! An Ollama as a backend: what it says of its models, and the context that is set for them.

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Daemon, MockOllama, OLLAMA_CONTEXT, OllamaModel, WorkerProcess, eventually,
};

use crate::common::{CHAT, MESSAGES, RESPONSES, binary, serve};

/// More words than Ollama's own context takes.
const LONG: usize = OLLAMA_CONTEXT as usize + 1_000;

struct Setting {
    daemon: Daemon,
    ollama: MockOllama,
    _worker: WorkerProcess,
}

impl Setting {
    async fn start(models: Vec<OllamaModel>, args: &[&str]) -> Self {
        let daemon = serve().start().await;
        let ollama = MockOllama::start(models).await;
        let worker = WorkerProcess::start(binary(), &daemon.url(), &ollama.url(), "box", args);
        daemon.has_workers(1).await;
        Self { daemon, ollama, _worker: worker }
    }

    async fn fact(&self, model: &str, name: &str, wanted: Value) {
        eventually("a fact of the model", DEADLINE, async || {
            self.daemon.workers().await[0]["model_facts"][model][name] == wanted
        })
        .await;
    }

    async fn post(&self, path: &str, body: Value) -> testkit::Response {
        self.daemon.client().post_json(path, &body).await
    }
}

fn long() -> String {
    let words: Vec<String> = (0..LONG).map(|number| format!("w{number}")).collect();
    words.join(" ")
}

fn chat(text: &str, more: &Value) -> Value {
    let mut chat = json!({"model": "qwen3:8b", "messages": [{"role": "user", "content": text}]});
    chat.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    chat
}

#[tokio::test]
async fn a_long_prompt_is_read_whole_where_a_context_is_set() {
    let setting = Setting::start(vec![OllamaModel::new("qwen3:8b")], &["--context", "32768"]).await;
    let (long, said) = (long(), format!("You said: {}", long()));
    let answer = setting.post(CHAT, chat(&long, &json!({}))).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], said, "{}", answer.status);
    let usage = &answer.json()["usage"];
    assert_eq!(usage["prompt_tokens"], LONG);
    let asked = setting.ollama.backend.request().await;
    assert_eq!(
        (&*asked.target, &asked.json()["options"]["num_ctx"]),
        ("/api/chat", &json!(32_768))
    );

    let stream = setting.post(CHAT, chat("hi you", &json!({"stream": true}))).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let text = stream.text();
    assert!(
        text.contains(r#"{"content":"said: "}"#) && text.ends_with("data: [DONE]\n\n"),
        "{text}"
    );
    setting.fact("qwen3:8b", "context_tokens", json!(32_768)).await;
}

#[tokio::test]
async fn every_api_reaches_it_with_tools_and_errors() {
    let setting = Setting::start(vec![OllamaModel::new("qwen3:8b")], &["--context", "32768"]).await;
    setting.ollama.call("weather", json!({"city": "Bern"}));
    let tools = json!([{"name": "weather", "input_schema": {"type": "object"}}]);
    let message =
        setting.post(MESSAGES, chat("hi", &json!({"max_tokens": 50, "tools": tools}))).await.json();
    assert_eq!(
        (&message["content"][0]["input"], &message["stop_reason"]),
        (&json!({"city": "Bern"}), &json!("tool_use"))
    );
    let response =
        setting.post(RESPONSES, json!({"model": "qwen3:8b", "input": "hi"})).await.json();
    assert_eq!(response["output"][0]["content"][0]["text"], "You said: hi");
    let completion = json!({"model": "qwen3:8b", "prompt": "hi"});
    let completion = setting.post("/v1/completions", completion).await.json();
    assert_eq!(completion["choices"][0]["text"], "You said: hi");

    let refused = setting.post(CHAT, chat("hi", &json!({"n": 2}))).await;
    assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("n")));
    setting.ollama.set_models(Vec::new());
    let gone = setting.post(CHAT, chat("hi", &json!({}))).await;
    assert_eq!(
        (gone.status, &gone.json()["error"]["message"]),
        (404, &json!("model 'qwen3:8b' not found"))
    );
}
