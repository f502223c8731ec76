//! Walkthrough 5: workers that are lost with a request in flight.

use testkit::{MockBackend, Reply};

use crate::common::{CHAT, ask, lend, post, serve};

#[tokio::test]
async fn when_a_real_worker_is_killed_another_answers() {
    let daemon = serve().start().await;
    let dying = MockBackend::start(&["m"]).await;
    dying.answer_with(|_| Reply::hang());
    let mut first = lend(&daemon, &dying, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    dying.request().await;
    let backend = MockBackend::start(&["m"]).await;
    let _second = lend(&daemon, &backend, 1).await;
    first.kill9().await;
    assert_eq!(answer.await.unwrap().status, 200);
    dying.aborted(1).await;
    daemon.is_idle().await;
}
