//! Ollama's API through the binary, with a worker's backend that has OpenAI's only.

use serde_json::{Value, json};
use testkit::{Form, Gate, MockBackend, Reply, chat::delta};

use crate::common::{CHAT, join, lend, serve};

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

#[tokio::test]
async fn a_tool_finds_the_server_and_its_models() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let root = client.get("/").await;
    assert_eq!((root.status, root.text().as_str()), (200, "Ollama is running"));
    let _worker = join(&daemon, Form::Binary, "w", 1).await;
    let tags = client.get("/api/tags").await;
    assert!(tags.header("x-warren-version").is_some());
    let names: Vec<Value> =
        tags.json()["models"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["m:latest"]);
    let shown = client.post_json("/api/show", &json!({"model": "m"})).await.json();
    assert_eq!(shown["capabilities"], json!(["completion", "tools"]));
    let load = client.post_json("/api/generate", &json!({"model": "m", "keep_alive": 0})).await;
    assert_eq!(load.json()["done_reason"], "unload");
    let refused = client.post_json("/api/push", &json!({"model": "m"})).await;
    assert_eq!(refused.status, 501, "{}", refused.text());
}

#[tokio::test]
async fn without_a_key_only_this_machine_is_served() {
    let daemon = serve().flag("--require-key").start().await;
    for path in ["/api/tags", "/api/ps"] {
        let refused = daemon.client().get(path).await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(refused.json()["error"].is_string(), "{}", refused.text());
    }
    let refused = daemon.client().post_json("/api/chat", &ask()).await;
    let told = refused.json();
    assert!(
        refused.status == 401 && told["error"].is_string() && told["err"] == "unauthorized",
        "{told}"
    );
}
