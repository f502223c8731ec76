//! The node protocol's consumer side, served by a worker's backend.

use serde_json::{Value, json};
use testkit::{Client, Form, Gate, MockBackend, Reply};

use crate::common::{CHAT, join, lend, serve};

const PATH: &str = "/api/chat";

fn word(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n")
}

fn ask(model: &str) -> Value {
    json!({
        "model": model, "temperature": 0.5, "max_new_tokens": 7, "conversation_id": "c", "user_id": "u",
        "messages": [{"role": "user", "content": "hi"}],
    })
}

#[tokio::test]
async fn lines_come_as_they_are_written_and_leaving_stops_the_backend() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let _worker = lend(&daemon, &backend, 1).await;
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    backend.then(Reply::stream([word("hel"), word("lo"), finish.to_owned()], &Gate::opened()));
    let answer = daemon.client().post_json(PATH, &ask("m")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.text(), "{\"o\":\"hel\"}\n{\"o\":\"lo\"}\n{\"done\":true}\n");
    let asked = backend.request().await.json();
    assert_eq!((&asked["stream"], &asked["max_tokens"]), (&json!(true), &json!(7)), "{asked}");
    let gate = Gate::closed();
    backend.then(Reply::stream([word("hel"), word("lo")], &gate));
    let asked = daemon.client().post(PATH, &ask("m")).open().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    answer.expect("{\"o\":\"hel\"}\n").await;
    answer.reset();
    backend.aborted(1).await;
    daemon.is_idle().await;
}

#[tokio::test]
async fn the_stock_words_tell_what_is_wrong() {
    let keyed =
        serve().flag("--require-key").set("--client-token", "k").set("--busy-timeout-secs", "0.2");
    let daemon = keyed.start().await;
    let err = async |client: &Client, body: &Value| {
        let answer = client.post_json(PATH, body).await;
        (answer.status, answer.json()["err"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(err(&daemon.client(), &ask("m")).await, (401, "unauthorized".to_owned()));
    let with_key = daemon.client().with_token("k");
    assert_eq!(err(&with_key, &ask("m")).await, (404, "unknown model".to_owned()));
    let bare = daemon.client().with_header("authorization", "k");
    assert_eq!(err(&bare, &json!([])).await, (400, "invalid request".to_owned()));
    let mut worker = join(&daemon, Form::Binary, "w", 1).await;
    let _busy = with_key.post(PATH, &ask("m")).open().await;
    let _job = worker.expect_job().await;
    assert_eq!(err(&with_key, &ask("m")).await, (504, "timeout waiting for node".to_owned()));
}
