//! `warren up`: one command, and the example it prints streams an answer.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{ChildProcess, Client, DEADLINE, MockBackend, RefusingPort, eventually};

use crate::common::{CHAT, MESSAGES, ask, ask_for, binary};

/// `warren up` with its own data directory, and where it listens.
async fn up(data: &tempfile::TempDir, args: &[&str]) -> (ChildProcess, SocketAddr) {
    let dir = data.path().display().to_string();
    let all = [&["up", "--listen", "127.0.0.1:0", "--data-dir", &dir], args].concat();
    let process = ChildProcess::start("up", binary(), &all);
    let address = process.listening("http").await;
    (process, address)
}

/// Waits until a model is offered to clients.
async fn offers(client: &Client, model: &str) {
    let offered = async || {
        let list = client.get("/v1/models").await.json();
        list["data"].as_array().is_some_and(|models| models.iter().any(|one| one["id"] == model))
    };
    eventually("the model being offered", DEADLINE, offered).await;
}

#[tokio::test]
async fn the_printed_example_streams_an_answer() {
    let data = tempfile::tempdir().unwrap();
    let (mut process, address) = up(&data, &["--demo", "--demo-pace", "0"]).await;
    let client = Client::new(address);
    offers(&client, "warren-demo").await;
    process.line_with(", then `warren invite`").await;
    process.line_with("(`warren web` signs you in)").await;
    assert!(!process.log().contains("#login="), "a code is for people alone");
    let example = process.line_with("-d '{").await;
    let body = example.trim().trim_start_matches("-d '").trim_end_matches('\'');
    let body: Value = serde_json::from_str(body).expect("the example's body is JSON");
    let url = format!("http://{address}{CHAT}");
    assert!(process.line_with("curl").await.contains(&url), "{}", process.log());
    let answer = client.post_json(CHAT, &body).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let text = answer.text();
    assert!(text.ends_with("data: [DONE]\n\n") && text.contains("demo"), "{text}");
    process.sigterm();
    assert_eq!(process.exit().await, Some(0));
}

/// The printed key lets other machines in.
#[tokio::test]
async fn the_printed_key_is_good() {
    let data = tempfile::tempdir().unwrap();
    let (process, address) = up(&data, &["--demo"]).await;
    let line = process.line_with("the key").await;
    let key = line.split_whitespace().last().unwrap();
    let elsewhere = Client::new(address).with_header("x-forwarded-for", "10.0.0.1");
    assert_eq!(elsewhere.get("/v1/models").await.status, 401);
    assert_eq!(elsewhere.with_token(key).get("/v1/models").await.status, 200);
}

#[tokio::test]
async fn it_lends_a_backend_without_a_socket_between() {
    let backend = MockBackend::start(&["m"]).await;
    let data = tempfile::tempdir().unwrap();
    let (_process, address) = up(&data, &["--backend", &backend.url()]).await;
    let client = Client::new(address);
    offers(&client, "m").await;
    let answer = client.post_json(CHAT, &ask(false)).await.json();
    assert_eq!(answer["choices"][0]["message"], json!({"role": "assistant", "content": "hello"}));
    drop(client.post(CHAT, &ask(true)).open().await);
    backend.reaches("everything ending", |counts| counts.in_flight() == 0).await;
}

#[tokio::test]
async fn its_backend_is_asked_at_the_named_endpoints_only() {
    let backend = MockBackend::start(&["m"]).await;
    let data = tempfile::tempdir().unwrap();
    let (_process, address) = up(&data, &["--backend", &backend.url(), "--endpoints", CHAT]).await;
    let client = Client::new(address);
    offers(&client, "m").await;
    let message = client.post_json(MESSAGES, &ask(false)).await;
    assert_eq!(message.json()["content"][0]["text"], "hello", "{}", message.text());
    assert_eq!(backend.request().await.target, CHAT);
}

/// `warren up` that looks for Ollama at this address.
async fn up_with_ollama_at(data: &tempfile::TempDir, ollama: SocketAddr) -> ChildProcess {
    let dir = data.path().display().to_string();
    let args = ["up", "--listen", "127.0.0.1:0", "--data-dir", &dir, "--demo-pace", "0"];
    let ollama = ollama.to_string();
    ChildProcess::start_with(data.path(), &[("OLLAMA_HOST", &ollama)], "up", binary(), &args)
}

#[tokio::test]
async fn a_model_server_that_starts_later_takes_the_place_of_the_demo_and_gives_it_back() {
    let data = tempfile::tempdir().unwrap();
    let port = RefusingPort::take();
    let place = port.address();
    let process = up_with_ollama_at(&data, place).await;
    let client = Client::new(process.listening("http").await);
    offers(&client, "warren-demo").await;
    process.line_with("No model server was found").await;
    drop(port);
    let backend = MockBackend::start_at(place, &["m"]).await;
    offers(&client, "m").await;
    process.line_with(&format!("{place} offers m")).await;
    let is_gone = async |model: &str| {
        let list = client.get("/v1/models").await.text();
        !list.contains(&format!("\"{model}\""))
    };
    eventually("the demo having left", DEADLINE, async || is_gone("warren-demo").await).await;
    assert_eq!(client.post_json(CHAT, &ask(false)).await.status, 200);
    drop(backend);
    offers(&client, "warren-demo").await;
    eventually("the model having gone", DEADLINE, async || is_gone("m").await).await;
}

#[tokio::test]
async fn the_banner_names_a_model_that_was_found_and_shows_secrets_once() {
    let data = tempfile::tempdir().unwrap();
    let backend = MockBackend::start(&["nomic-embed-text", "/models/Qwen3-8B.gguf"]).await;
    let mut process = up_with_ollama_at(&data, backend.address()).await;
    let client = Client::new(process.listening("http").await);
    let example = process.line_with("-d '{").await;
    assert!(example.contains(r#""model":"Qwen3-8B.gguf""#), "{}", process.log());
    let key = process.line_with("the key").await;
    assert!(key.contains("wk_") && !process.log().contains("No model"), "{}", process.log());
    process.line_with("shown once").await;
    // The path stays a name of the model, and the backend is asked by its own.
    let answer = client.post_json(CHAT, &ask_for("/models/Qwen3-8B.gguf", false)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(backend.request().await.json()["model"], "/models/Qwen3-8B.gguf");
    let near = client.post_json(CHAT, &ask_for("qwen3", false)).await;
    assert_eq!(near.status, 404);
    let words = "the nearest that exists is Qwen3-8B.gguf";
    assert!(near.text().contains(words), "{}", near.text());
    process.sigterm();
    assert_eq!(process.exit().await, Some(0));
    let again = up_with_ollama_at(&data, backend.address()).await;
    let key = again.line_with("the key").await;
    assert!(key.contains("client.token") && !again.log().contains("wk_"), "{}", again.log());
}

#[tokio::test]
async fn models_named_once_for_two_backends_are_offered_where_they_are() {
    let (one, other) = (MockBackend::start(&["a"]).await, MockBackend::start(&["b"]).await);
    let data = tempfile::tempdir().unwrap();
    let backends = ["--backend", &one.url(), "--backend", &other.url(), "--models", "a,b"];
    let (process, address) = up(&data, &backends).await;
    let client = Client::new(address);
    offers(&client, "a").await;
    offers(&client, "b").await;
    for model in ["a", "b"] {
        assert_eq!(client.post_json(CHAT, &ask_for(model, false)).await.status, 200);
    }
    assert_eq!(one.request().await.json()["model"], "a", "{}", process.log());
    assert_eq!(other.request().await.json()["model"], "b", "{}", process.log());
}
