//! A backend's own errors before the first byte: another provider is asked, and the client only hears
//! of the last error.

use serde_json::{Value, json};
use testkit::{Connect, Form, Gate, MockBackend, Reply};

use crate::common::{CHAT, ask, lend, post, serve};

fn broken(by: &str) -> Value {
    json!({"error": {"message": format!("out of memory: {by}")}})
}

#[tokio::test]
async fn two_workers_of_which_one_is_broken_fail_no_request() {
    let daemon = serve().start().await;
    let [bad, good] = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    bad.answer_with(|_| Reply::json(500, &broken("bad")));
    let _bad = lend(&daemon, &bad, 4).await;
    let _good = lend(&daemon, &good, 4).await;
    let (probes, streams) = (bad.counts().started, [false, true]);
    for stream in streams.into_iter().cycle().take(12) {
        assert_eq!(daemon.client().post_json(CHAT, &ask(stream)).await.status, 200);
    }
    assert_eq!(bad.counts().started - probes, 3, "it rests after its third fault");
    let requests = daemon.admin().get("/admin/requests").await.json();
    assert!(requests.to_string().contains("\"requeues\":1"), "{requests}");
    assert!(!requests.to_string().contains("backend_error"), "{requests}");
    daemon.lines_with("its backend refused, and another is asked", 3).await;
}

/// An error that never ends is not waited for.
#[tokio::test]
async fn the_rest_of_an_unwanted_error_is_stopped_at_its_backend() {
    let daemon = serve().start().await;
    let bad = MockBackend::start(&["m"]).await;
    let _bad = lend(&daemon, &bad, 1).await;
    let gate = Gate::opened();
    let endless = Reply::stream_with(500, &[], ["{\"error\":"], &gate).stalled();
    bad.then(endless);
    let mut good = Connect::to(&daemon).form(Form::Binary).join("good", &["m"], 1).await;
    let first = post(&daemon.client(), CHAT, ask(false));
    let second = post(&daemon.client(), CHAT, ask(false));
    for _ in 0..2 {
        let job = good.expect_job().await;
        good.complete(&job, 200, &json!({"by": "good"})).await;
    }
    for answer in [first, second] {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    bad.aborted(1).await;
    daemon.is_idle().await;
}
