//! Walkthrough 4: a client hangs up in the middle of a stream.

use serde_json::json;
use testkit::Form;

use crate::common::{
    CHAT, ask, begin_backend_stream, begin_stream, both_forms, post, with_lender, with_worker,
};

both_forms!(the_worker_is_told_and_its_slot_is_free);

async fn the_worker_is_told_and_its_slot_is_free(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let (job, answer) = begin_stream(&daemon, &mut worker).await;
    drop(answer);
    let cancelled = (job.request_id.clone(), json!("client_disconnect"));
    assert_eq!(worker.expect_cancel().await, cancelled);
    daemon.is_idle().await;
    // A stock worker says nothing back, and is given the next request all the same.
    let next = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"next": 1})).await;
    assert_eq!(next.await.unwrap().json(), json!({"next": 1}));
}

#[tokio::test]
async fn a_real_worker_aborts_its_backend_at_once() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let (_gate, answer) = begin_backend_stream(&daemon, &backend).await;
    drop(answer);
    backend.aborted(1).await;
    daemon.is_idle().await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
}
