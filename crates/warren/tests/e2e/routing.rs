//! Which worker is given which request, and whose request is next.

use serde_json::{Value, json};
use testkit::{Client, Connect, Daemon, FakeWorker, Form, MockBackend};

use crate::common::{
    CHAT, ask, ask_for, assert_openai_error, both_forms, join, openai_error, post, serve,
    start_worker, with_worker,
};

both_forms!(keys_take_turns, a_requeued_request_is_next, a_named_worker_alone_is_asked);

/// A request that can be told from others.
fn numbered(number: u32) -> Value {
    json!({"model": "m", "number": number})
}

/// The number of the next request that a worker is given, which it answers.
async fn serve_next(worker: &mut FakeWorker) -> Value {
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    let body: Value = serde_json::from_slice(&job.body).unwrap();
    body["number"].clone()
}

/// Posts numbered requests one after the other, each once the one before is queued.
async fn queue(daemon: &Daemon, client: &Client, numbers: &[u32], already: u64) {
    for (number, queued) in numbers.iter().zip(already + 1..) {
        let _answer = post(client, CHAT, numbered(*number));
        daemon.has_queued(queued).await;
    }
}

async fn keys_take_turns(form: Form) {
    let daemon = serve().set("--client-token", "key-1").start().await;
    let mut worker = join(&daemon, form, "w", 1).await;
    let _first = post(&daemon.client(), CHAT, numbered(0));
    let job = worker.expect_job().await;
    queue(&daemon, &daemon.client(), &[1, 2, 3], 0).await;
    queue(&daemon, &daemon.client().with_token("key-1"), &[11, 12], 3).await;
    worker.complete(&job, 200, &json!({})).await;
    let mut served = Vec::new();
    for _ in 0..5 {
        served.push(serve_next(&mut worker).await.as_u64().unwrap());
    }
    // Each key's own in order, and neither waits for all of the other's.
    let (heavy, light): (Vec<u64>, Vec<u64>) = served.iter().partition(|number| **number < 10);
    assert_eq!((heavy, light), (vec![1, 2, 3], vec![11, 12]));
    assert_eq!(served[4], 3, "{served:?}");
}

async fn a_requeued_request_is_next(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let _first = post(&daemon.client(), CHAT, numbered(0));
    worker.expect_job().await;
    queue(&daemon, &daemon.client(), &[1, 2], 0).await;
    worker.vanish();
    daemon.has_queued(3).await;
    let mut worker = join(&daemon, form, "w", 1).await;
    for number in 0..3 {
        assert_eq!(serve_next(&mut worker).await, number);
    }
}

async fn a_named_worker_alone_is_asked(form: Form) {
    let daemon = serve().start().await;
    let _one = join(&daemon, form, "one", 4).await;
    let mut two = join(&daemon, form, "two", 4).await;
    for number in 0..4 {
        let request = daemon.client().post(CHAT, &numbered(number));
        let answer = tokio::spawn(request.header("x-warren-provider", two.id()).send());
        assert_eq!(serve_next(&mut two).await, number);
        assert_eq!(answer.await.unwrap().status, 200);
    }
    let request = daemon.client().post(CHAT, &ask(false));
    let nobody = request.clone().header("x-warren-provider", "w-0000000000000000").send().await;
    assert_openai_error(&nobody, 404, "no provider for model m");
    openai_error(&request.header("x-warren-provider", "two").send().await, 400);
}

/// With one request at a time, equals take turns.
#[tokio::test]
async fn equals_take_turns() {
    let daemon = serve().start().await;
    let backends = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    let _one = start_worker(&daemon, &backends[0].url(), 4);
    let _two = start_worker(&daemon, &backends[1].url(), 4);
    daemon.has_workers(2).await;
    for _ in 0..10 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
        daemon.is_idle().await;
    }
    let shares = backends.map(|backend| backend.counts().started);
    assert_eq!(shares, [5, 5]);
}

/// A conversation stays where its cache is warm, and another goes elsewhere.
#[tokio::test]
async fn a_conversation_stays_with_its_worker() {
    let daemon = serve().start().await;
    let backends = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    let _one = start_worker(&daemon, &backends[0].url(), 4);
    let _two = start_worker(&daemon, &backends[1].url(), 4);
    daemon.has_workers(2).await;
    let mut conversation = "You are a careful assistant. ".repeat(100);
    for turn in 0..6 {
        conversation.push_str(&format!("turn {turn}. "));
        let body = json!({"model": "m", "messages": [{"role": "user", "content": conversation}]});
        assert_eq!(daemon.client().post_json(CHAT, &body).await.status, 200);
        daemon.is_idle().await;
    }
    let mut shares = backends.map(|backend| backend.counts().started);
    shares.sort_unstable();
    assert_eq!(shares, [0, 6]);
}

/// A request that waits for one model does not hold up one that waits for another.
#[tokio::test]
async fn models_do_not_wait_for_each_other() {
    let daemon = serve().start().await;
    let mut busy = join(&daemon, Form::Stock, "busy", 1).await;
    let _first = post(&daemon.client(), CHAT, ask(false));
    let _held = busy.expect_job().await;
    let _waiting = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let mut other = Connect::to(&daemon).join("other", &["n"], 1).await;
    let answer = post(&daemon.client(), CHAT, ask_for("n", false));
    let job = other.expect_job().await;
    other.complete(&job, 200, &json!({})).await;
    assert_eq!(answer.await.unwrap().status, 200);
    daemon.has_queued(1).await;
}
