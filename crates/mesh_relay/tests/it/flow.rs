//! Receivers that are slow, senders that are fast, and many nodes.

use std::time::Duration;

use mesh_relay::{Rate, Settings};
use serde_json::json;

use crate::kit::{Kit, Node};

const FRAMES: usize = 1600;

/// The joins that are announced to a node at once, and in the minute after that.
const JOINS: usize = 16 + 60;

/// Sends numbered frames of 64 KiB, as fast as the relay takes them.
async fn flood(mut node: Node, to: String) -> Node {
    let fill = "A".repeat(64 * 1024);
    for number in 0..FRAMES {
        let data = format!("{number:08}{fill}");
        node.pass_on("relayData", &to, json!({"sessionID": "s", "data": data})).await;
    }
    node
}

fn number(text: &str) -> usize {
    let at = text.find("\"data\":\"").unwrap() + 8;
    text[at..at + 8].parse().unwrap()
}

#[tokio::test]
async fn a_slow_receiver_loses_nothing() {
    let kit = Kit::new().await;
    let (one, mut two) = kit.pair().await;
    let sending = tokio::spawn(flood(one, two.id.clone()));
    let relay = kit.relay.clone();
    let waits = async || relay.counts().waits > 0;
    testkit::eventually("the sender waits", Duration::from_secs(20), waits).await;
    let before = kit.relay.counts().frames;
    assert!(before < FRAMES as u64, "all was taken before anything was read");
    for expected in 0..FRAMES {
        assert_eq!(number(&two.hear_text().await), expected);
    }
    sending.await.unwrap();
    assert_eq!(kit.relay.counts().frames, FRAMES as u64 + 1);
}

#[tokio::test]
async fn two_that_flood_each_other_lose_nothing_and_do_not_lock_up() {
    let kit = Kit::new().await;
    let (one, two) = kit.pair().await;
    let both = [(one, 2_u8), (two, 1)].map(|(node, other)| {
        let to = seal::Identity::from_seed([other; 32]).node_id().to_string();
        tokio::spawn(exchange(node, to))
    });
    for side in both {
        side.await.unwrap();
    }
}

/// Sends and reads at the same time.
async fn exchange(node: Node, to: String) {
    use futures_util::{SinkExt, StreamExt};
    use tokio_tungstenite::tungstenite::Message;
    let fill = "A".repeat(64 * 1024);
    let text = |number: usize| {
        let data = format!("{number:08}{fill}");
        node.text("relayData", &to, json!({"sessionID": "s", "data": data}))
    };
    let texts: Vec<String> = (0..200).map(text).collect();
    let (mut sink, mut stream) = node.socket.split();
    let send = async {
        for text in texts {
            sink.send(Message::text(text)).await.unwrap();
        }
    };
    let read = async {
        let mut expected = 0;
        while expected < 200 {
            if let Message::Text(text) = stream.next().await.unwrap().unwrap() {
                assert_eq!(number(&text), expected);
                expected += 1;
            }
        }
    };
    testkit::within("the exchange", async { tokio::join!(send, read) }).await;
}

#[tokio::test]
async fn a_receiver_that_never_reads_loses_its_session_and_both_ends_get_the_reason() {
    let patience = Duration::from_millis(200);
    let kit = Kit::with(Settings { patience, ..Settings::default() }).await;
    let (mut one, mut two) = kit.pair().await;
    let fill = "A".repeat(1 << 20);
    let id = two.id.clone();
    // More than the buffers of both sockets take; messages after the close are reported, too.
    for _ in 0..40 {
        one.pass_on("relayData", &id, json!({"sessionID": "s", "data": fill})).await;
    }
    let messages = one.hear().await;
    assert_eq!(messages["error"]["code"], "peer_too_slow");
    assert_eq!(messages["error"]["sessionID"], "s");
    assert_eq!(one.hear().await["relayClose"]["fromNodeID"], id);
    let mut heard = two.hear().await;
    while heard.get("relayData").is_some() {
        heard = two.hear().await;
    }
    assert_eq!(heard["relayClose"]["sessionID"], "s");
    assert_eq!(kit.relay.counts().sessions, 0);
}

#[tokio::test]
async fn a_sender_over_its_rate_is_read_more_slowly_and_loses_nothing() {
    let data = Rate { per_second: 200.0, burst: 10.0 };
    let kit = Kit::with(Settings { data, ..Settings::default() }).await;
    let (mut one, mut two) = kit.pair().await;
    let (id, begun) = (two.id.clone(), std::time::Instant::now());
    for number in 0..60 {
        one.pass_on("relayData", &id, json!({"sessionID": "s", "data": number})).await;
    }
    for number in 0..60 {
        assert_eq!(two.hear().await["relayData"]["data"], number);
    }
    assert!(begun.elapsed() >= Duration::from_millis(200), "{:?}", begun.elapsed());
    assert!(kit.relay.counts().waits > 0);
}

#[tokio::test]
async fn a_slow_receiver_does_not_hold_up_the_sessions_of_others() {
    let kit = Kit::new().await;
    let (one, two) = kit.pair().await;
    let sending = tokio::spawn(flood(one, two.id.clone()));
    let relay = kit.relay.clone();
    let waits = async || relay.counts().waits > 0;
    testkit::eventually("the sender waits", Duration::from_secs(20), waits).await;
    let (mut three, mut four) = (kit.node(3).await, kit.node(4).await);
    three.pass_on("relayOpen", &four.id, json!({"sessionID": "s"})).await;
    four.hear().await;
    let id = four.id.clone();
    for number in 0..100 {
        three.pass_on("relayData", &id, json!({"sessionID": "s", "data": number})).await;
        assert_eq!(four.hear().await["relayData"]["data"], number);
    }
    sending.abort();
}

#[tokio::test]
async fn a_thousand_nodes_are_sent_no_more_each_than_ten_are() {
    let kit = Kit::with(Settings { accept_unsigned: true, ..Settings::default() }).await;
    let mut nodes = Vec::new();
    for number in 0..1000 {
        let mut node = kit.dial().await;
        node.register(&format!("node-{number}"), "", json!({"loadedModels": ["m"]})).await;
        assert!(node.hear().await.get("registerAck").is_some());
        nodes.push(node);
    }
    assert_eq!((kit.relay.counts().registered, kit.relay.counts().sent), (1000, 1000));
    for node in &mut nodes {
        node.say(r#"{"discover":{"filter":{"maxPeers":3}}}"#).await;
        let list = node.hear().await;
        assert_eq!(list["discoverResponse"]["peers"].as_array().unwrap().len(), 3);
    }
    for (number, node) in nodes.iter_mut().enumerate() {
        node.register(&format!("node-{number}"), "", json!({"loadedModels": ["m"]})).await;
        assert!(node.hear().await.get("registerAck").is_some());
    }
    assert_eq!(kit.relay.counts().sent, 3000);
    for (number, node) in nodes.iter_mut().enumerate() {
        node.register(&format!("node-{number}"), "", json!({"loadedModels": ["n"]})).await;
    }
    // The nodes before it have changed, too; only a few of these changes are announced to it.
    for node in &mut nodes {
        let mut messages = 0;
        while node.hear().await.get("registerAck").is_none() {
            messages += 1;
        }
        assert!(messages <= JOINS, "{messages}");
    }
}
