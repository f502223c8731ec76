//! Nodes that send bad messages.

use mesh_relay::Settings;
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
async fn a_binary_frame_that_is_no_text_gets_an_error() {
    let kit = Kit::new().await;
    let mut node = kit.dial().await;
    node.send(Message::binary(vec![0xff, 0xfe])).await;
    assert_eq!(code(&mut node).await, "invalid_json");
    node.say("null").await;
    assert_eq!(code(&mut node).await, "invalid_message", "and the connection goes on");
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
async fn an_unregistered_connection_cannot_send_much() {
    let kit = Kit::new().await;
    let mut stranger = kit.dial().await;
    stranger.say(&format!("\"{}\"", "x".repeat(100_000))).await;
    stranger.closed().await;
    kit.node(1).await.assert_heard_all().await;
}

#[tokio::test]
async fn a_request_without_upgrade_gets_the_protocol() {
    let kit = Kit::new().await;
    let answer = testkit::Client::new(kit.address).get("/ws?node=x").await;
    assert_eq!(answer.status, 426);
}
