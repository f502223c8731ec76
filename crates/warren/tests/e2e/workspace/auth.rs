//! Authentication: the first message of every connection.

use serde_json::json;
use testkit::{
    Client,
    workspace::{Knock, WorkspaceClient, client_messages, sample},
};

use super::kit::{TOKEN, WorkspaceHost, serving};
use crate::common::serve;

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

#[tokio::test]
async fn every_message_before_auth_is_an_error_and_the_end() {
    let place = WorkspaceHost::start().await;
    for name in client_messages().iter().filter(|name| **name != "auth") {
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        let words = client.refused(sample(name)).await;
        assert!(words.contains("auth"), "{name}: {words}");
        assert!(client.ends().await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_bad_message_before_auth_ends_the_connection_with_an_error() {
    let place = WorkspaceHost::start().await;
    for text in ["", "hello", "{", "[]", "{}", r#"{"type":"auth"}"#, r#"{"type":"auth","token":7}"#]
    {
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        client.say_text(text).await;
        client.hear("error").await;
        assert!(client.ends().await.is_empty(), "{text}");
    }
    let mut client = WorkspaceClient::open(place.daemon.address()).await;
    client.say_bytes(b"\x01hello").await;
    client.hear("error").await;
    assert!(client.ends().await.is_empty());
}

#[tokio::test]
async fn a_flooding_or_silent_stranger_is_cut_off() {
    let place = WorkspaceHost::start().await;
    let mut silent = WorkspaceClient::open(place.daemon.address()).await;
    let mut loud = WorkspaceClient::open(place.daemon.address()).await;
    let long = json!({"type": "auth", "token": TOKEN, "more": "x".repeat(200_000)});
    loud.say(long).await;
    let heard = loud.ends().await;
    assert!(heard.iter().all(|heard| heard.as_message("auth_result").is_none()), "{heard:?}");
    // Five seconds.
    let heard = silent.ends().await;
    assert!(heard.iter().all(|heard| heard.kind() == "error"), "{heard:?}");
    place.client().await;
}

#[tokio::test]
async fn a_guessing_address_has_to_wait_and_is_then_admitted() {
    let place = WorkspaceHost::start().await;
    for _ in 0..5 {
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        assert_eq!(client.auth("a guess").await["success"], false);
    }
    let mut client = WorkspaceClient::open(place.daemon.address()).await;
    let result = client.auth(TOKEN).await;
    assert_eq!(result["success"], false, "{result}");
    assert!(result["message"].as_str().unwrap().contains("wait"), "{result}");
    let admitted = async || {
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        client.auth(TOKEN).await["success"] == true
    };
    testkit::eventually("the end of the wait", testkit::DEADLINE, admitted).await;
}

#[tokio::test]
async fn a_server_without_tokens_says_how_to_make_one_and_takes_it_at_once() {
    let place = WorkspaceHost::of(serve()).await;
    let mut client = WorkspaceClient::open(place.daemon.address()).await;
    let result = client.auth("anything").await;
    assert!(result["message"].as_str().unwrap().contains("warren key create"), "{result}");
    let key = json!({"scopes": ["workspace:write"]});
    let (_, key) = crate::cli::make_key(&place.daemon, key).await;
    WorkspaceClient::connect(place.daemon.address(), &key).await;
}

#[tokio::test]
async fn pages_of_other_origins_and_other_hosts_are_refused_before_they_can_speak() {
    let place = WorkspaceHost::of(serving()).await;
    let knock = || testkit::workspace::Knock::at(place.daemon.address());
    let refused = knock().header("origin", "https://evil.example").open().await.err();
    assert_eq!(refused, Some(403));
    let own = place.daemon.url();
    knock().header("origin", &own).open().await.unwrap().admitted(TOKEN).await;
    // What is no upgrade at all.
    let plain = Client::new(place.daemon.address()).get("/ws").await;
    assert!((400..500).contains(&plain.status), "{}", plain.text());
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
