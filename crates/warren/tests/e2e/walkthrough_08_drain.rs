//! Walkthrough 8: a worker is drained.

use serde_json::json;
use testkit::{Gate, Reply};

use crate::common::{CHAT, ask, post, with_lender};

#[tokio::test]
async fn a_real_worker_finishes_and_comes_back() {
    let (daemon, backend, _worker) = with_lender(2).await;
    let gate = Gate::closed();
    backend.then(Reply::completion("late").after(&gate));
    let answer = post(&daemon.client(), CHAT, ask(false));
    backend.request().await;
    let drained = daemon.workers().await[0]["worker_id"].clone();
    let path = format!("/admin/workers/{}/drain", drained.as_str().unwrap());
    let told = daemon.admin().post_json(&path, &json!({})).await;
    assert!((200..300).contains(&told.status), "{}", told.text());
    gate.open(1);
    let answer = answer.await.unwrap().json();
    assert_eq!(answer["choices"][0]["message"]["content"], "late");
    // It is not told to stay away: it reconnects, as a new worker, and takes what waits.
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    assert_ne!(daemon.workers().await[0]["worker_id"], drained);
}
