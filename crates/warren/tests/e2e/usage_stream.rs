//! Usage of streams: asked of the backend, hidden from clients that did not ask, and counted for
//! those that left.

use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, Gate, Reply, eventually};

use crate::common::{CHAT, ask, with_lender};

const WORD: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":12}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// The tokens counted so far, of one kind.
async fn tokens(daemon: &Daemon, kind: &str) -> u64 {
    let metrics = daemon.metrics().await;
    let lines = metrics.lines().filter(|line| {
        line.starts_with("warren_tokens_total{") && line.contains(&format!("\"{kind}\""))
    });
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

async fn counted(daemon: &Daemon, kind: &str, expected: u64) {
    let reached = async || tokens(daemon, kind).await == expected;
    eventually(&format!("{expected} {kind} tokens in /metrics"), DEADLINE, reached).await;
}

#[tokio::test]
async fn usage_is_asked_for_and_hidden_unless_the_client_asks() {
    let (daemon, backend, _worker) = with_lender(1).await;
    backend.then(Reply::stream([WORD, STOP, USAGE, DONE], &Gate::opened()));
    let stream = daemon.client().post_json(CHAT, &ask(true)).await;
    assert_eq!(stream.text(), [WORD, STOP, DONE].concat());
    let asked = backend.request().await.json();
    assert_eq!(asked["stream_options"], json!({"include_usage": true}));
    counted(&daemon, "completion", 12).await;
    counted(&daemon, "prompt", 30).await;
    backend.then(Reply::stream([WORD, STOP, USAGE, DONE], &Gate::opened()));
    let mut asking: Value = ask(true);
    asking["stream_options"] = json!({"include_usage": true});
    let stream = daemon.client().post_json(CHAT, &asking).await;
    assert_eq!(stream.text(), [WORD, STOP, USAGE, DONE].concat());
    assert_eq!(backend.request().await.json(), asking);
    counted(&daemon, "completion", 24).await;
}

#[tokio::test]
async fn a_client_that_left_is_counted_for_what_it_got() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let gate = Gate::closed();
    backend.then(Reply::stream([WORD; 9], &gate));
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    gate.open(5);
    let mut answer = asked.answer().await;
    answer.expect(&WORD.repeat(5)).await;
    answer.reset();
    backend.aborted(1).await;
    counted(&daemon, "completion", 5).await;
    assert!(tokens(&daemon, "prompt").await > 0);
}
