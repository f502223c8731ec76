//! A conversation and the worker whose cache is warm for it.

use serde_json::json;
use testkit::MockBackend;

use crate::common::{CHAT, serve, start_worker};

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
