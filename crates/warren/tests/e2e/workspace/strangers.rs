//! Connections that never say who they are, and such that never read.

use serde_json::json;
use testkit::workspace::Knock;
use tokio::task::JoinSet;

use super::kit::{TOKEN, WorkspaceHost};

#[tokio::test]
async fn a_thousand_strangers_keep_nobody_out_for_long_and_cost_little() {
    let place = WorkspaceHost::start().await;
    let mut known = place.client().await;
    let before = place.daemon.resident_bytes();
    let mut knocks = JoinSet::new();
    for _ in 0..1_000 {
        knocks.spawn(Knock::at(place.daemon.address()).open());
    }
    let mut strangers = Vec::new();
    while let Some(opened) = knocks.join_next().await {
        strangers.extend(opened.unwrap());
    }
    // Admitted clients stay, and are served.
    known.ask(json!({"type": "list_sessions"}), "session_list").await;
    let more = place.daemon.resident_bytes().saturating_sub(before);
    assert!(more < 100 * 1024 * 1024, "{} strangers cost {more} bytes", strangers.len());
    assert!(strangers.len() <= 256, "{} were let wait", strangers.len());
    let admitted = async || match Knock::at(place.daemon.address()).open().await {
        Ok(mut client) => client.auth(TOKEN).await["success"] == true,
        Err(_) => false,
    };
    testkit::eventually("a place for one who is known", testkit::DEADLINE, admitted).await;
    for stranger in &mut strangers {
        stranger.ends().await;
    }
}
