//! Which worker is given which request, and whose request is next.

use serde_json::{Value, json};
use testkit::{FakeWorker, Form, MockBackend};

use crate::common::{
    CHAT, ask, assert_openai_error, both_forms, join, openai_error, serve, start_worker,
};

both_forms!(a_named_worker_alone_is_asked);

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
