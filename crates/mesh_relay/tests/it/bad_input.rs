//! Nodes that send bad messages.

use mesh_relay::{Rate, Settings};
use seal::{Identity, challenge_text, sign_hex};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::kit::{Kit, Node};

fn identity(number: u8) -> (Identity, String) {
    let identity = Identity::from_seed([number; 32]);
    let id = identity.node_id().to_string();
    (identity, id)
}

async fn code(node: &mut Node) -> Value {
    node.hear().await["error"]["code"].clone()
}

#[tokio::test]
async fn frames_that_crash_stock_relays_get_an_error_each() {
    let kit = Kit::new().await;
    let mut node = kit.dial().await;
    for text in ["null", r#"{"relayData":null}"#, r#"{"register":{"nodeID":5}}"#, "", "[]", "{"] {
        node.say(text).await;
        assert!(code(&mut node).await.as_str().unwrap().starts_with("invalid_"), "{text}");
    }
    node.send(Message::binary(vec![0xff, 0xfe])).await;
    assert_eq!(code(&mut node).await, "invalid_json");
    kit.node(1).await.assert_heard_all().await;
}

#[tokio::test]
async fn a_bad_signature_is_refused_and_its_owner_keeps_its_place() {
    let kit = Kit::new().await;
    let mut owner = kit.node(1).await;
    let mut thief = kit.dial().await;
    let (other, _) = identity(9);
    for signature in [sign_hex(&other, &owner.id), String::new(), "zz".to_owned()] {
        thief.register(&owner.id, &signature, json!({})).await;
        assert_eq!(code(&mut thief).await, "invalid_signature");
    }
    owner.assert_heard_all().await;
}

#[tokio::test]
async fn a_challenge_is_answered_once_and_the_stock_signature_cannot_be_replayed() {
    let kit = Kit::new().await;
    let (identity, id) = identity(1);
    let stock = sign_hex(&identity, &id);
    let mut node = kit.dial_warren().await;
    let challenge = node.hear().await;
    let nonce = challenge["registerChallenge"]["nonce"].as_str().unwrap().to_owned();
    let host = kit.address.to_string();
    for wrong in [
        stock.clone(),
        sign_hex(&identity, &challenge_text(&nonce, "evil.example", &identity.node_id())),
        sign_hex(&identity, &challenge_text("0", &host, &identity.node_id())),
    ] {
        node.register(&id, &wrong, json!({})).await;
        assert_eq!(code(&mut node).await, "invalid_signature");
    }
    let answer = sign_hex(&identity, &challenge_text(&nonce, &host, &identity.node_id()));
    node.register(&id, &answer, json!({})).await;
    assert_eq!(node.hear().await["registerAck"]["nodeID"], id);
    let mut replay = kit.dial().await;
    replay.register(&id, &stock, json!({})).await;
    assert_eq!(code(&mut replay).await, "invalid_signature");
    let mut other_link = kit.dial_warren().await;
    let other = other_link.hear().await;
    assert_ne!(other["registerChallenge"]["nonce"], nonce);
    other_link.register(&id, &answer, json!({})).await;
    assert_eq!(code(&mut other_link).await, "invalid_signature");
    node.assert_heard_all().await;
}

#[tokio::test]
async fn a_relay_that_knows_its_names_gives_no_challenge_for_another() {
    let hosts = vec!["relay.example".to_owned()];
    let kit = Kit::with(Settings { hosts, ..Settings::default() }).await;
    let warren = Some("warren.mesh.2");
    assert_eq!(kit.dial_as(warren, Some("evil.example")).await.err(), Some(421));
    assert!(kit.dial_as(warren, Some("Relay.Example:443")).await.is_ok());
    assert!(kit.dial_as(None, Some("evil.example")).await.is_ok(), "stock nodes sign no name");
}

#[tokio::test]
async fn a_message_in_anothers_name_and_a_second_id_are_refused() {
    let kit = Kit::new().await;
    let (mut one, mut two) = kit.pair().await;
    let mut third = kit.node(3).await;
    let honest = third.id.clone();
    third.id = one.id.clone();
    third.pass_on("relayData", &two.id, json!({"sessionID": "s", "data": ""})).await;
    assert_eq!(code(&mut third).await, "wrong_sender");
    third.id = honest.clone();
    third.pass_on("relayData", &two.id, json!({"sessionID": "s", "data": ""})).await;
    assert_eq!(code(&mut third).await, "session_not_found");
    let (identity, id) = identity(4);
    third.register(&id, &sign_hex(&identity, &id), json!({})).await;
    assert_eq!(code(&mut third).await, "invalid_register");
    one.pass_on("relayOpen", &id, json!({"sessionID": "t"})).await;
    assert_eq!(code(&mut one).await, "peer_not_found", "it is no ghost");
    one.pass_on("relayOpen", &honest, json!({"sessionID": "t"})).await;
    assert_eq!(third.hear().await["relayOpen"]["sessionID"], "t");
    two.assert_heard_all().await;
}

#[tokio::test]
async fn too_many_requests_are_told_when_to_try_again() {
    let discover = Rate { per_second: 0.1, burst: 1.0 };
    let kit = Kit::with(Settings { discover, ..Settings::default() }).await;
    let mut node = kit.node(1).await;
    node.say(r#"{"discover":{}}"#).await;
    assert_eq!(node.hear().await, json!({"discoverResponse": {"peers": []}}));
    node.say(r#"{"discover":{}}"#).await;
    let limited = node.hear().await;
    assert_eq!(limited["error"]["code"], "rate_limited");
    let wait = limited["error"]["retryAfterSeconds"].as_f64().unwrap();
    assert!((9.0..=10.0).contains(&wait), "{wait}");
    let refused = &kit.relay.counts().refused;
    assert_eq!(refused.values().sum::<u64>(), 1);
}

#[tokio::test]
async fn an_unregistered_connection_cannot_send_much() {
    let kit = Kit::new().await;
    let mut stranger = kit.dial().await;
    stranger.say(&format!("\"{}\"", "x".repeat(100_000))).await;
    stranger.closed().await;
    kit.node(1).await.assert_heard_all().await;
}

#[tokio::test]
async fn a_request_without_upgrade_is_told_the_protocol() {
    let kit = Kit::new().await;
    let answer = testkit::Client::new(kit.address).get("/ws?node=x").await;
    assert_eq!(answer.status, 426);
}
