//! Authentication: the first message of every connection.

use serde_json::json;
use testkit::workspace::{Knock, WorkspaceClient};

use super::kit::{TOKEN, WorkspaceHost, serving};

#[tokio::test]
async fn auth_with_the_token_lets_in_and_with_a_wrong_one_ends() {
    let place = WorkspaceHost::start().await;
    let mut client = WorkspaceClient::open(place.daemon.address()).await;
    let result = client.ask(json!({"type": "auth", "token": TOKEN}), "auth_result").await;
    assert_eq!(result["success"], true, "{result}");
    client.ask(json!({"type": "list_sessions"}), "session_list").await;

    for wrong in ["", "wrong", &TOKEN[1..]] {
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        let result = client.auth(wrong).await;
        assert_eq!(result["success"], false, "{result}");
        assert!(result["message"].as_str().unwrap().contains("warren key create"), "{result}");
        assert!(client.ends().await.is_empty());
    }
    let log = place.daemon.log();
    assert!(!log.contains(TOKEN), "{log}");
}

#[tokio::test]
async fn keepalive_is_answered_whatever_else_goes_on() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    for _ in 0..3 {
        client.ask(json!({"type": "keepalive"}), "keepalive_ack").await;
    }
}

/// Wrong tokens by way of a proxy on this machine, one after the other, and then the right one from here.
#[tokio::test]
async fn strangers_behind_a_proxy_do_not_keep_the_owner_out() {
    let place = WorkspaceHost::start().await;
    wrong_until_refused(&place, "203.0.113.7").await;
    place.client().await;
    place.daemon.line_with("--trusted-proxies 127.0.0.1").await;
}

#[tokio::test]
async fn a_trusted_proxy_tells_its_strangers_from_the_owner() {
    let place = WorkspaceHost::of(serving().set("--trusted-proxies", "127.0.0.1")).await;
    wrong_until_refused(&place, "198.51.100.9, 203.0.113.7").await;
    let owner = through_proxy(&place, "203.0.113.8").await;
    owner.admitted(TOKEN).await;
    place.client().await;
}

async fn through_proxy(place: &WorkspaceHost, client: &str) -> WorkspaceClient {
    let knock = Knock::at(place.daemon.address()).header("x-forwarded-for", client);
    knock.open().await.expect("the server takes clients")
}

async fn wrong_until_refused(place: &WorkspaceHost, client: &str) {
    for _ in 0..5 {
        let mut stranger = through_proxy(place, client).await;
        assert_eq!(stranger.auth("wrong").await["success"], false);
    }
    let result = through_proxy(place, client).await.auth(TOKEN).await;
    assert!(result["message"].as_str().unwrap().contains("too many wrong tokens"), "{result}");
}
