//! Ollama's API through the binary, with a worker's backend that has OpenAI's only.

use serde_json::{Value, json};
use testkit::{Gate, MockBackend, Reply, chat::delta};

use crate::common::{CHAT, lend, serve};

const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn ask() -> Value {
    json!({"model": "m:latest", "messages": [{"role": "user", "content": "hi"}], "options": {"num_predict": 7}})
}

#[tokio::test]
async fn lines_come_as_they_are_written_and_leaving_stops_the_backend() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT]);
    let _worker = lend(&daemon, &backend, 1).await;
    let stream = [delta("hel"), delta("lo"), FINISH.to_owned()];
    backend.then(Reply::stream(stream, &Gate::opened()));
    let answer = daemon.client().post_json("/api/chat", &ask()).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let text = answer.text();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: String =
        lines.iter().map(|line| line["message"]["content"].as_str().unwrap()).collect();
    assert_eq!((said.as_str(), &lines[2]["done"]), ("hello", &json!(true)));
    let asked = backend.request().await.json();
    assert_eq!(
        (&asked["model"], &asked["stream"], &asked["max_tokens"]),
        (&json!("m"), &json!(true), &json!(7)),
        "{asked}"
    );
    let gate = Gate::closed();
    backend.then(Reply::stream([delta("hel"), delta("lo")], &gate));
    let asked = daemon.client().post("/api/chat", &ask()).open().await;
    gate.open(1);
    let answer = asked.answer().await;
    drop(answer);
    backend.aborted(1).await;
}
