//! The fakes with each other.

use serde_json::{Value, json};

use super::{
    key::MeshKey,
    socket::{RelaySocket, data, forwarded, registration},
    *,
};

const MODEL: &str = "qwen/qwen3-8b";

async fn node(relay: &FakeStockRelay) -> FakeMeshNode {
    FakeMeshNode::start(relay.address(), 1, Script::new(MODEL, "t0 t1 t2")).await
}

/// A peer that speaks for itself, once it is registered.
async fn registered(relay: &FakeStockRelay) -> (RelaySocket, MeshKey) {
    let key = MeshKey::new([3; 32]);
    let mut socket = RelaySocket::open(relay.address(), &key.id()).await;
    socket.say(&registration(&key, "Stock", &facts::capabilities(&[]))).await;
    socket.expect("registerAck").await;
    (socket, key)
}

fn chat(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "a secret"}]})
}

#[tokio::test]
async fn a_gateway_gets_an_answer_of_a_node_through_a_relay_or_is_told_why_not() {
    let relay = FakeStockRelay::start().await;
    let node = node(&relay).await;
    let gateway = FakeGateway::start(relay.address(), 2).await;
    gateway.sees(node.id(), MODEL).await;
    let answer = gateway.ask(node.id(), &chat("QWEN3-8B")).await.unwrap();
    assert_eq!(answer.text(), "t0 t1 t2");
    assert_eq!(answer.complete["tokensOut"], 4);
    assert_eq!(node.hears("inferenceRequest", 1).await[0]["request"]["stream"], true);
    let nobody = MeshKey::new([9; 32]).id();
    assert_eq!(gateway.ask(&nobody, &chat(MODEL)).await, Err(GatewayFailure::NotConnected));
    let Err(GatewayFailure::Error { error, chunks }) = gateway.ask(node.id(), &chat("none")).await
    else {
        panic!("an error");
    };
    assert_eq!((error["code"].as_str(), chunks), (Some("model_not_loaded"), 0));
}

#[tokio::test]
async fn a_node_drops_without_a_word_what_it_cannot_read() {
    let relay = FakeStockRelay::start().await;
    let node = node(&relay).await;
    let (mut peer, key) = registered(&relay).await;
    let odd = json!({"inferenceRequest": {"requestID": "r", "request": {"model": MODEL,
        "messages": [], "stop": "x"}}});
    let query = json!({"modelQuery": {"modelID": MODEL}});
    for message in [odd.to_string(), query.to_string(), "\u{1}noise".to_owned()] {
        peer.say(&data(&key.id(), node.id(), "s", message.as_bytes())).await;
    }
    // In a session that was never opened, in either form.
    let load = json!({"loadModel": {"requestID": "l", "modelID": "m"}}).to_string();
    peer.say(&data(&key.id(), node.id(), "s", load.as_bytes())).await;
    peer.expect("relayData").await;
    assert_eq!(node.dropped(), [odd, query, Value::Null]);
    assert_eq!(node.heard_of("loadModel").len(), 1);
}

#[tokio::test]
async fn a_relay_believes_everybody_and_says_what_stock_ones_say() {
    let relay = FakeStockRelay::start().await;
    let (first, key) = registered(&relay).await;
    let mut other = RelaySocket::open(relay.address(), "x").await;
    for (text, code) in [
        ("nonsense", "invalid_json"),
        ("{}", "invalid_message"),
        (r#"{"register":{}}"#, "invalid_register"),
        (r#"{"dance":{}}"#, "unsupported_message"),
    ] {
        other.text(text).await;
        assert_eq!(other.expect("error").await["code"], code, "{text}");
    }
    other.say(&forwarded("relayOpen", "x", "deadbeef", "s")).await;
    assert_eq!(other.expect("error").await["message"], "Peer deadbeef is not connected");
    // No signature is asked for, and the newer registration has the id.
    other.say(&json!({"register": {"_0": {"nodeID": key.id(), "displayName": "B"}}})).await;
    other.expect("registerAck").await;
    let closed = crate::sockets::closed(&mut first.split().1).await;
    assert_eq!(closed, Some((1012, "Replaced by newer session".to_owned())));
}

#[tokio::test]
async fn a_mac_drops_the_flat_form_and_writes_as_swift_does() {
    let mac = FakeMac::start(Script::new("mlx-community/Qwen3", "hi you")).await;
    let mut peer = LanPeer::dial(mac.address()).await;
    peer.say(&json!({"hello": {"protocolVersion": 1}})).await;
    peer.hello().await;
    let ack = String::from_utf8(peer.hear_bytes().await.unwrap()).unwrap();
    assert!(ack.starts_with(r#"{"helloAck":{"_0":"#) && ack.contains(r"mlx-community\/Qwen3"));
    let link = mac.link().await;
    let beat = facts::heartbeat(&peer.device, &[]);
    peer.say(&json!({ "heartbeat": beat })).await;
    peer.say(&json!({"heartbeat": {"_0": beat}})).await;
    peer.expect("heartbeatAck").await;
    assert_eq!(link.dropped().len(), 1);
    for (model, end) in [("mlx-community/Qwen3", "inferenceComplete"), ("none", "inferenceError")] {
        let asked = json!({"requestID": peer.device, "request": chat(model), "streaming": true});
        peer.say(&json!({"inferenceRequest": {"_0": asked}})).await;
        assert_eq!(peer.expect(end).await["requestID"], peer.device.to_uppercase());
    }
    assert_eq!(link.hears("inferenceRequest", 2).await[1]["request"]["model"], "none");
}
