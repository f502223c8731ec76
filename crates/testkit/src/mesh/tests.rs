//! The fakes with each other.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::{Gate, within};

const MODEL: &str = "qwen/qwen3-8b";

fn chat(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "a secret"}]})
}

#[tokio::test]
async fn a_gateway_gets_an_answer_of_a_node_through_a_relay() {
    let relay = FakeStockRelay::start().await;
    let node = FakeMeshNode::start(relay.address(), NodeSettings::new(1, MODEL)).await;
    let gateway = FakeGateway::start(relay.address(), 2).await;
    gateway.sees(node.id(), MODEL).await;
    let answer = gateway.ask(node.id(), &chat("QWEN3-8B")).await.unwrap();
    assert_eq!(answer.text(), "t0 t1 t2");
    assert_eq!(answer.complete["tokensOut"], 4);
    assert_eq!(node.hears("inferenceRequest", 1).await[0]["request"]["stream"], true);
    let kinds: Vec<_> = relay.forwarded().into_iter().map(|passed| passed.kind).collect();
    assert_eq!(kinds[..3], ["relayOpen", "relayReady", "relayData"]);
    let passed = relay.forwarded();
    let text = String::from_utf8_lossy(&passed[2].data);
    assert!(text.contains("a secret") && text.starts_with(r#"{"inferenceRequest":{"_0":"#));
}

#[tokio::test]
async fn a_gateway_is_told_why_there_is_no_answer() {
    let relay = FakeStockRelay::start().await;
    let script = Script::text("half of").fail("internal_error", "boom");
    let settings = NodeSettings { script, ..NodeSettings::new(1, MODEL) };
    let node = FakeMeshNode::start(relay.address(), settings).await;
    let gateway = FakeGateway::start(relay.address(), 2).await;
    let nobody = MeshKey::new([9; 32]).id();
    assert_eq!(gateway.ask(&nobody, &chat(MODEL)).await, Err(GatewayFailure::NotConnected));
    let Err(GatewayFailure::Error { error, chunks }) = gateway.ask(node.id(), &chat("none")).await
    else {
        panic!("an error");
    };
    assert_eq!((error["code"].as_str(), chunks), (Some("model_not_loaded"), 0));
    let Err(GatewayFailure::Error { error, chunks }) = gateway.ask(node.id(), &chat(MODEL)).await
    else {
        panic!("an error");
    };
    assert_eq!((error["errorMessage"].as_str(), chunks), (Some("boom"), 2));
}

#[tokio::test]
async fn a_node_answers_one_after_the_other_and_does_not_stop() {
    let relay = FakeStockRelay::start().await;
    let gate = Gate::closed();
    let script = Script::text("a b").gate(&gate);
    let settings = NodeSettings { script, ..NodeSettings::new(1, MODEL) };
    let node = FakeMeshNode::start(relay.address(), settings).await;
    let gateway = FakeGateway::start(relay.address(), 2).await;
    let mut session = gateway.open(node.id()).await.unwrap();
    session.ask(&chat(MODEL)).await;
    assert_eq!(session.hear().await.unwrap().0, "inferenceChunk");
    session.close().await;
    let data = |relay: &FakeStockRelay| {
        relay.forwarded().into_iter().filter(|passed| passed.kind == "relayData").count()
    };
    gate.open(2);
    let rest = async || data(&relay) == 5;
    crate::eventually("the rest, which nobody wants", crate::DEADLINE, rest).await;
}

#[tokio::test]
async fn a_node_drops_without_a_word_what_it_cannot_read() {
    let relay = FakeStockRelay::start().await;
    let node = FakeMeshNode::start(relay.address(), NodeSettings::new(1, MODEL)).await;
    let key = MeshKey::new([3; 32]);
    let mut peer = RelaySocket::registered(relay.address(), &key, &[]).await;
    let odd = json!({"inferenceRequest": {"requestID": "r", "request": {"model": MODEL,
        "messages": [], "stop": "x"}}});
    let query = json!({"modelQuery": {"modelID": MODEL}});
    for message in [odd.to_string(), query.to_string(), "\u{1}noise".to_owned()] {
        peer.data(node.id(), "s", message.as_bytes()).await;
    }
    // In a session that was never opened, in either form.
    let load = json!({"loadModel": {"requestID": "l", "modelID": "m"}}).to_string();
    peer.data(node.id(), "s", load.as_bytes()).await;
    peer.expect("relayData").await;
    assert_eq!(node.dropped(), [odd, query, Value::Null]);
    assert_eq!(node.heard_of("loadModel").len(), 1);
}

#[tokio::test]
async fn a_relay_believes_everybody_and_says_what_stock_ones_say() {
    let relay = FakeStockRelay::start().await;
    let key = MeshKey::new([3; 32]);
    let mut first = RelaySocket::registered(relay.address(), &key, &["m"]).await;
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
    other.forward("relayOpen", "deadbeef", "s").await;
    assert_eq!(other.expect("error").await["message"], "Peer deadbeef is not connected");
    // No signature is asked for, and the newer registration has the id.
    other.say(&json!({"register": {"_0": {"nodeID": key.id(), "displayName": "B"}}})).await;
    other.expect("registerAck").await;
    let closed = first.closed().await;
    assert_eq!(closed, Some((1012, "Replaced by newer session".to_owned())));
    assert!(relay.knows(&key.id()).unwrap()["capabilities"].is_null());
}

#[tokio::test]
async fn a_frozen_relay_stands_still() {
    let relay = FakeStockRelay::start().await;
    let keys = [3, 4].map(|seed| MeshKey::new([seed; 32]));
    let mut one = RelaySocket::registered(relay.address(), &keys[0], &[]).await;
    let mut other = RelaySocket::registered(relay.address(), &keys[1], &[]).await;
    relay.freeze();
    one.data(&keys[1].id(), "s", b"later").await;
    let heard = tokio::time::timeout(Duration::from_millis(50), other.hear()).await;
    assert!(heard.is_err());
    relay.thaw();
    assert_eq!(other.expect("relayData").await["fromNodeID"], keys[0].id());
    relay.stop().await;
    assert_eq!(within("the end", other.hear()).await, None);
}

#[tokio::test]
async fn macs_greet_ask_each_other_and_pass_models_on() {
    let files = vec![
        ("config.json".to_owned(), b"{}".to_vec()),
        (".hidden".to_owned(), b"x".to_vec()),
        ("model.safetensors".to_owned(), vec![7; CHUNK + 5]),
    ];
    let settings = MacSettings {
        passcode: Some("hunter2".to_owned()),
        files: [("org/m".to_owned(), files)].into(),
        ..MacSettings::default()
    };
    let models = settings.models.clone();
    let mac = FakeMac::start(settings).await;
    let other = MacSettings { passcode: Some("hunter2".to_owned()), ..MacSettings::default() };
    let other = FakeMac::start(other).await;
    let link = other.dial(mac.address()).await.unwrap();
    let answer = mac.link().await;
    assert_eq!(answer.hello["deviceInfo"]["hardware"]["platform"], "macOS");
    let (chunks, kind, _) = link.ask(&chat(&models[0])).await;
    assert_eq!((chunks.len(), kind.as_str()), (5, "inferenceComplete"));
    let (_, kind, error) = link.ask(&chat("none")).await;
    assert_eq!((kind.as_str(), error.get("code")), ("inferenceError", None));
    assert_eq!(link.query("org/m").await["totalSizeBytes"], CHUNK + 8);
    assert_eq!(link.query("none").await["available"], false);
    let files = link.fetch("org/m").await;
    assert_eq!((files.len(), link.pieces()), (2, 3));
    assert_eq!(files["model.safetensors"], vec![7; CHUNK + 5]);
    drop(link);
    answer.closed().await;
}

#[tokio::test]
async fn a_mac_closes_without_a_word_when_passcodes_differ() {
    let settings = MacSettings { passcode: Some("a".to_owned()), ..MacSettings::default() };
    let (mac, open) =
        (FakeMac::start(settings).await, FakeMac::start(MacSettings::default()).await);
    assert!(open.dial(mac.address()).await.is_none());
    assert!(mac.dial(open.address()).await.is_none());
    let mut peer = LanPeer::dial(mac.address()).await;
    peer.hello(&[], Some(&passcode_hash("b"))).await;
    assert!(peer.closed().await.is_empty());
}

#[tokio::test]
async fn a_mac_drops_the_flat_form_and_writes_as_swift_does() {
    let mac = FakeMac::start(MacSettings::default()).await;
    let mut peer = LanPeer::dial(mac.address()).await;
    peer.say(&json!({"hello": {"protocolVersion": 1}})).await;
    peer.hello(&["m"], None).await;
    let ack = String::from_utf8(peer.hear_bytes().await.unwrap()).unwrap();
    assert!(ack.starts_with(r#"{"helloAck":{"_0":"#) && ack.contains(r"mlx-community\/Qwen3"));
    let link = mac.link().await;
    let beat = facts::heartbeat(&peer.device, &[]);
    peer.say(&json!({ "heartbeat": beat })).await;
    peer.say(&json!({"heartbeat": {"_0": beat}})).await;
    peer.expect("heartbeatAck").await;
    assert_eq!(link.dropped().len(), 1);
    let id = link.ask_for(&chat("m")).await;
    let asked = peer.expect("inferenceRequest").await;
    assert_eq!(
        (asked["requestID"].as_str().unwrap(), id.to_uppercase()),
        (id.as_str(), id.clone())
    );
    let complete = json!({"inferenceComplete": {"_0": {"requestID": id.to_lowercase()}}});
    peer.say(&complete).await;
    assert_eq!(link.answer(&id).await.1, "inferenceComplete");
    peer.shut().await;
    link.closed().await;
}

#[tokio::test]
async fn a_peer_of_raw_bytes_sees_the_stock_faults_of_a_transfer() {
    let files = ["a", "b"].map(|name| (name.to_owned(), vec![1; 3])).to_vec();
    let settings =
        MacSettings { files: [("m".to_owned(), files)].into(), ..MacSettings::default() };
    let mac = FakeMac::start(settings).await;
    let (mut peer, _) = LanPeer::greeted(mac.address(), &[]).await;
    let transfer = peer.device.clone();
    let request = json!({"transferID": transfer, "modelID": "m"});
    peer.say(&json!({"modelTransferRequest": {"_0": request}})).await;
    let (first, second) =
        (peer.expect("modelTransferChunk").await, peer.expect("modelTransferChunk").await);
    assert_eq!((&first["isLastChunk"], &second["isLastChunk"]), (&json!(false), &json!(true)));
    let complete = peer.expect("modelTransferComplete").await;
    assert_eq!(complete["transferID"], transfer.to_uppercase());
}
