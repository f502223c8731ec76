//! A cluster whose token is renewed because a machine was taken out.

use serde_json::{Value, json};
use testkit::{DEADLINE, eventually};

use super::{
    cluster_kit::{has_notice, member, others, peer_address},
    kit::WorkspaceHost,
};

const OLD: &str = "the old token";

async fn linked(host: &WorkspaceHost, names: &[&str]) {
    let are = async || {
        let others = others(host).await;
        let linked = others.iter().filter(|other| other["connected"] == true);
        let mut linked: Vec<&str> = linked.filter_map(|other| other["name"].as_str()).collect();
        linked.sort_unstable();
        linked == names
    };
    eventually(&format!("links to {names:?} only"), DEADLINE, are).await;
}

/// A machine with a key of its own and a copy of the old token.
async fn is_refused_with_the_old_token(host: &WorkspaceHost) {
    let copy = member("copy", OLD).set("--peer", &peer_address(host).await);
    let copy = WorkspaceHost::of(copy).await;
    let words = copy.daemon.line_with("no link to a peer").await;
    assert!(words.contains("has a new token") && words.contains("invitation"), "{words}");
    has_notice(&copy, "has a new token").await;
    assert_eq!(others(&copy).await, Vec::<Value>::new());
}

#[tokio::test]
async fn after_a_machine_was_taken_out_its_token_opens_nothing_and_a_member_that_was_away_gets_the_new_one()
 {
    let mut here = WorkspaceHost::of(member("here", OLD)).await;
    let peer = peer_address(&here).await;
    let lost = WorkspaceHost::of(member("lost", OLD).set("--peer", &peer)).await;
    let mut away = WorkspaceHost::of(member("away", OLD).set("--peer", &peer)).await;
    linked(&here, &["away", "lost"]).await;
    linked(&away, &["here", "lost"]).await;
    away.daemon.kill9().await;
    linked(&here, &["lost"]).await;
    let forget = json!({"type": "cluster_forget", "node_id": "lost"});
    let ack = here.client().await.ask(forget, "cluster_action_ack").await;
    assert!(ack["message"].as_str().is_some_and(|it| it.contains("new token")), "{ack}");
    has_notice(&lost, "taken out").await;
    is_refused_with_the_old_token(&here).await;
    away.daemon.start_again().await;
    linked(&away, &["here"]).await;
    linked(&here, &["away"]).await;
    has_notice(&away, "--cluster-token").await;
    is_refused_with_the_old_token(&away).await;
    // Their settings still have the old one.
    here.daemon.stop_and_restart().await;
    linked(&here, &["away"]).await;
    away.daemon.stop_and_restart().await;
    linked(&away, &["here"]).await;
    has_notice(&here, "--cluster-token").await;
    is_refused_with_the_old_token(&here).await;
}
