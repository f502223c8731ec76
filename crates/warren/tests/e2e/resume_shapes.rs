//! Every API's streams outlive a worker that is killed, and workers that are restarted.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Client, Daemon, Gate, MockBackend, Story, Streaming, WorkerProcess};

use crate::common::{CHAT, MESSAGES, RESPONSES, binary, serve};

const COMPLETIONS: &str = "/v1/completions";

/// How many events of the backend pass before its worker is killed.
const BEFORE: usize = 9;

/// A request for a stream, and where the text is in its events.
#[derive(Clone)]
struct Api {
    path: &'static str,
    body: Value,
    text: &'static str,
}

fn messages() -> Value {
    json!([{"role": "user", "content": "tell me of the river and of nine lanterns"}])
}

fn chat() -> Api {
    let body = json!({"model": "story", "stream": true, "messages": messages()});
    Api { path: CHAT, body, text: "/choices/0/delta/content" }
}

fn completions() -> Api {
    let body = json!({"model": "story", "stream": true, "prompt": "the river and nine lanterns"});
    Api { path: COMPLETIONS, body, text: "/choices/0/text" }
}

fn anthropic() -> Api {
    let body = json!({"model": "story", "stream": true, "max_tokens": 300, "messages": messages()});
    Api { path: MESSAGES, body, text: "/delta/text" }
}

fn responses() -> Api {
    let body = json!({"model": "story", "stream": true, "input": "the river and nine lanterns"});
    Api { path: RESPONSES, body, text: "/delta" }
}

fn ollama() -> Api {
    let body = json!({"model": "story", "messages": messages()});
    Api { path: "/api/chat", body, text: "/message/content" }
}

fn gemini() -> Api {
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "the river"}]}]});
    let path = "/v1beta/models/story:streamGenerateContent?alt=sse";
    Api { path, body, text: "/candidates/0/content/parts/0/text" }
}

impl Api {
    async fn start(&self, client: &Client) -> Streaming {
        client.post(self.path, &self.body).start().await
    }

    /// The text in a stream.
    fn text_of(&self, stream: &str) -> String {
        let data = stream.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let events = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let text = |event: Value| {
            let is_delta = event["type"].as_str().is_none_or(|kind| kind.ends_with("delta"));
            let text = event.pointer(self.text)?.as_str()?.to_owned();
            is_delta.then_some(text)
        };
        events.filter_map(text).collect()
    }
}

/// A real worker that lends a backend with stories.
async fn lend(daemon: &Daemon, name: &str, backend: &MockBackend) -> WorkerProcess {
    let args = ["--models", "story", "--max-concurrent", "64"];
    let worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), name, &args);
    let goes_on = async || {
        let workers = daemon.workers().await;
        workers
            .iter()
            .any(|known| known["worker_name"] == name && known.to_string().contains("continuation"))
    };
    testkit::eventually("a worker that goes on", testkit::DEADLINE, goes_on).await;
    worker
}

/// Reads until there is some text.
async fn some_text(api: &Api, answer: &mut Streaming) -> String {
    let mut read = String::new();
    while api.text_of(&read).len() < 12 {
        let chunk = answer.next_chunk().await.expect("the stream goes on");
        read.push_str(&String::from_utf8_lossy(&chunk));
    }
    read
}

/// The worker is killed in the middle of the answer; what the client has in the end is what it would have had.
async fn outlives_its_worker(api: Api, first: Story, second: Story) {
    let daemon = serve().start().await;
    let gate = Gate::closed();
    let dying = first.through(&gate).start_with(&["story"]).await;
    let mut worker = lend(&daemon, "dying", &dying).await;
    let asking = tokio::spawn({
        let (api, client) = (api.clone(), daemon.client());
        async move { api.start(&client).await }
    });
    gate.open(BEFORE);
    let mut answer = asking.await.unwrap();
    let mut read = some_text(&api, &mut answer).await;
    let living = second.start_with(&["story"]).await;
    let _other = lend(&daemon, "living", &living).await;
    worker.kill9().await;
    read.push_str(&answer.finish().await.text());
    let undisturbed = api.start(&daemon.client()).await.finish().await.text();
    let (told, whole) = (api.text_of(&read), api.text_of(&undisturbed));
    assert!(whole.len() > 40, "{undisturbed}");
    assert_eq!(told, whole, "{read}");
    let kinds = |stream: &str| -> Vec<String> {
        let mut kinds: Vec<_> = stream
            .lines()
            .filter_map(|line| line.strip_prefix("event: "))
            .filter(|kind| !kind.contains("delta") && *kind != "ping")
            .map(str::to_owned)
            .collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&read), kinds(&undisturbed), "one message, with one beginning and one end");
    daemon.is_idle().await;
    let resumed = "warren_answers_resumed_total{outcome=\"resumed\"} 1";
    assert!(daemon.metrics().await.contains(resumed));
}

#[tokio::test]
async fn chat_completions() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(chat(), llama_cpp(), llama_cpp()).await;
}

#[tokio::test]
async fn chat_completions_of_a_server_that_is_told_to_go_on() {
    outlives_its_worker(chat(), Story::like_vllm(), Story::like_vllm()).await;
}

#[tokio::test]
async fn text_completions() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(completions(), llama_cpp(), llama_cpp()).await;
}

#[tokio::test]
async fn messages_in_their_own_shape() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(anthropic(), llama_cpp(), llama_cpp()).await;
}

#[tokio::test]
async fn messages_that_are_translated() {
    outlives_its_worker(anthropic(), Story::like_vllm(), Story::like_vllm()).await;
}

#[tokio::test]
async fn messages_of_which_the_rest_is_translated() {
    outlives_its_worker(anthropic(), Story::like_llama_cpp(), Story::like_vllm()).await;
}

#[tokio::test]
async fn responses_in_their_own_shape() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(responses(), llama_cpp(), llama_cpp()).await;
}

#[tokio::test]
async fn responses_that_are_translated() {
    outlives_its_worker(responses(), Story::like_vllm(), Story::like_vllm()).await;
}

#[tokio::test]
async fn ollamas_chat() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(ollama(), llama_cpp(), llama_cpp()).await;
}

#[tokio::test]
async fn geminis_contents() {
    let llama_cpp = Story::like_llama_cpp;
    outlives_its_worker(gemini(), llama_cpp(), llama_cpp()).await;
}

/// Asks until it is told to stop. Returns how many answers there were.
async fn ask_on(
    client: Client,
    api: Api,
    whole: String,
    over: tokio::sync::watch::Receiver<bool>,
) -> u32 {
    let mut count = 0;
    while !*over.borrow() {
        let answer = api.start(&client).await.finish().await;
        let text = answer.text();
        assert_eq!((answer.status, api.text_of(&text)), (200, whole.clone()), "{text}");
        count += 1;
    }
    count
}

/// Two workers are killed and started again in turn, while twenty clients have streams.
#[tokio::test]
async fn a_rolling_restart_is_an_error_for_nobody() {
    let daemon = serve().set("--drain-timeout-secs", "0.1").start().await;
    let story = Story::like_llama_cpp().at_pace(Duration::from_millis(10));
    let backends = [story.clone().start_with(&["story"]).await, story.start_with(&["story"]).await];
    let mut workers = Vec::new();
    for (number, backend) in backends.iter().enumerate() {
        workers.push(lend(&daemon, &format!("w{number}"), backend).await);
    }
    let apis = [chat(), anthropic(), completions(), responses()];
    let (stop, over) = tokio::sync::watch::channel(false);
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..20 {
        let api = apis[number % apis.len()].clone();
        let whole = api.start(&daemon.client()).await.finish().await.text();
        let whole = api.text_of(&whole);
        clients.spawn(ask_on(daemon.client(), api, whole, over.clone()));
    }
    for round in 0..4 {
        let (number, drains) = (round % 2, round >= 2);
        if drains {
            let known = daemon.workers().await;
            let name = format!("w{number}");
            let id = known.iter().find(|worker| worker["worker_name"] == name.as_str()).unwrap();
            let drain = format!("/admin/workers/{}/drain", id["worker_id"].as_str().unwrap());
            daemon.admin().post_json(&drain, &json!({})).await;
        }
        workers[number].kill9().await;
        daemon.has_workers(1).await;
        workers[number] = lend(&daemon, &format!("w{number}"), &backends[number]).await;
    }
    stop.send(true).unwrap();
    let counts = clients.join_all().await;
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    daemon.is_idle().await;
    let metrics = daemon.metrics().await;
    let resumed =
        metrics.lines().find(|line| line.contains("answers_resumed_total{outcome=\"resumed\"}"));
    assert!(resumed.is_some_and(|line| !line.ends_with(" 0")), "{metrics}");
}
