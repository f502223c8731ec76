//! `warren up`: one command, and the example it prints streams an answer.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{ChildProcess, Client, DEADLINE, MockBackend, eventually};

use crate::common::{CHAT, MESSAGES, ask, binary};

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
    process.line_with("--listen 0.0.0.0:9178, then `warren invite`").await;
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
