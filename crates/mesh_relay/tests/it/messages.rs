//! Every message, between nodes that speak as stock ones do.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::kit::Kit;

#[tokio::test]
async fn nodes_register_discover_and_get_joins_and_leaves() {
    let kit = Kit::new().await;
    let mut one = kit.node(1).await;
    one.say(&json!({"discover": {"requestingNodeID": one.id}}).to_string()).await;
    assert_eq!(one.hear().await, json!({"discoverResponse": {"peers": []}}));
    let two = kit.node(2).await;
    let is_two = json!({"nodeID": two.id, "displayName": "node"});
    assert_eq!(one.hear().await, json!({ "peerJoined": is_two }));
    one.say(&json!({"discover": {"_0": {"requestingNodeID": one.id}}}).to_string()).await;
    let list = one.hear().await;
    let peer = &list["discoverResponse"]["peers"][0];
    assert_eq!(peer["capabilities"], json!({"loadedModels": ["m2"]}));
    assert_eq!((&peer["natType"], &peer["endpoints"]), (&json!("unknown"), &json!([])));
    drop(two);
    assert_eq!(one.hear().await, json!({ "peerLeft": is_two }));
    assert_eq!((kit.relay.counts().registered, kit.relay.peers().len()), (1, 1));
}

#[tokio::test]
async fn everything_between_two_nodes_goes_on_word_for_word() {
    let kit = Kit::new().await;
    let (mut one, mut two) = (kit.node(1).await, kit.node(2).await);
    let info = json!({"publicIP": "127.0.0.1", "publicPort": 1, "natType": "unknown"});
    for (kind, more) in [
        ("offer", json!({"sessionID": "S-1", "connectionInfo": info, "signature": "82"})),
        ("answer", json!({"sessionID": "S-1", "connectionInfo": info, "signature": "82"})),
        ("iceCandidate", json!({"sessionID": "S-1", "candidate": {"ip": "::1", "port": 1}})),
        ("relayOpen", json!({"sessionID": "S-1", "extra": 16.0})),
        ("relayReady", json!({"sessionID": "S-1"})),
        ("relayData", json!({"sessionID": "S-1", "data": "eyJhIjoxfQ=="})),
        ("relayData", json!({"sessionID": "S-1", "data": [1, 2, 3]})),
        ("relayClose", json!({"sessionID": "S-1"})),
    ] {
        let text = one.text(kind, &two.id, more);
        one.say(&text).await;
        assert_eq!(two.hear_text().await, text);
    }
    assert_eq!(kit.relay.counts().frames, 8);
}

#[tokio::test]
async fn wrapped_messages_go_on_flat_and_binary_frames_as_text() {
    let kit = Kit::new().await;
    let (mut one, mut two) = (kit.node(1).await, kit.node(2).await);
    let flat = one.text("relayOpen", &two.id, json!({"sessionID": "s"}));
    let wrapped = flat.replace("{\"relayOpen\":", "{\"relayOpen\":{\"_0\":") + "}";
    one.say(&wrapped).await;
    assert_eq!(two.hear_text().await, flat);
    one.send(Message::binary(flat.clone().into_bytes())).await;
    assert_eq!(two.hear_text().await, flat);
}

#[tokio::test]
async fn an_absent_target_is_reported_byte_for_byte() {
    let kit = Kit::new().await;
    let mut one = kit.node(1).await;
    one.pass_on("offer", "deadbeef", json!({})).await;
    let words = r#"{"error":{"code":"peer_not_found","message":"Peer deadbeef is not connected"}}"#;
    assert_eq!(one.hear_text().await, words);
    one.pass_on("relayOpen", "deadbeef", json!({"sessionID": "s"})).await;
    let with_session = words.replace("connected\"", "connected\",\"sessionID\":\"s\"");
    assert_eq!(one.hear_text().await, with_session);
}

#[tokio::test]
async fn messages_up_to_16_mib_pass_and_longer_ones_cost_the_connection() {
    let kit = Kit::new().await;
    let (mut one, mut two) = kit.pair().await;
    let data = "A".repeat(15 << 20);
    let text = one.text("relayData", &two.id, json!({"sessionID": "s", "data": data}));
    let id = two.id.clone();
    let sent = async { one.say(&text).await };
    let (heard, ()) = tokio::join!(two.hear_text(), sent);
    assert_eq!(heard, text);
    let text = one.text("relayData", &id, json!({"sessionID": "s", "data": "A".repeat(17 << 20)}));
    use futures_util::SinkExt;
    let _ = one.socket.send(Message::text(text)).await;
    one.closed().await;
    assert_eq!(two.hear().await["peerLeft"]["nodeID"], one.id);
}
