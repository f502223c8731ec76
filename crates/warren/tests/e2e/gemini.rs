//! Gemini's API through the binary: a worker whose backend has Chat Completions and Embeddings only.

use serde_json::{Value, json};
use testkit::{Daemon, MockBackend, WorkerProcess};

use crate::common::{CHAT, lend, serve};

const EMBEDDINGS: &str = "/v1/embeddings";

async fn house() -> (Daemon, MockBackend, WorkerProcess) {
    let daemon = serve().set("--log", "trace").start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[CHAT, EMBEDDINGS]);
    let worker = lend(&daemon, &backend, 2).await;
    (daemon, backend, worker)
}

fn ask() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
}

#[tokio::test]
async fn a_client_is_answered_whole_as_events_and_as_an_array() {
    let (daemon, _backend, _worker) = house().await;
    let post = |path: &str| {
        let (client, path) = (daemon.client(), path.to_owned());
        async move { client.post_json(&path, &ask()).await }
    };
    let whole = post("/v1beta/models/m:generateContent?key=any").await;
    let said = |answer: &Value| {
        answer["candidates"][0]["content"]["parts"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!((whole.status, said(&whole.json())), (200, "hello".to_owned()), "{}", whole.text());
    let array = post("/v1beta/models/m:streamGenerateContent").await;
    let elements: Vec<Value> = serde_json::from_str(&array.text()).unwrap();
    assert_eq!(elements.iter().map(said).collect::<String>(), "hello");
    let events = post("/v1beta/models/m:streamGenerateContent?alt=sse").await.text();
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let elements: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(elements.iter().map(said).collect::<String>(), "hello");
    assert!(elements.last().unwrap()["usageMetadata"]["totalTokenCount"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_key_in_the_query_is_in_no_log_and_goes_to_no_backend() {
    let (daemon, backend, _worker) = house().await;
    let secret = "a-secret-of-the-client";
    for path in [
        format!("/v1beta/models/m:generateContent?key={secret}"),
        format!("/v1beta/models/nobody-has-it:generateContent?key={secret}"),
        format!("/v1beta/nothing?key={secret}"),
        format!("/v1beta/models/m:generateContent?k%65y={secret}&x=1"),
    ] {
        daemon.client().post_json(&path, &ask()).await;
    }
    let asked = backend.request().await;
    assert!(!format!("{asked:?}").contains(secret), "{asked:?}");
    assert!(daemon.log().contains("TRACE"), "all there is to log is logged");
    assert!(!daemon.log().contains(secret), "{}", daemon.log());
}
