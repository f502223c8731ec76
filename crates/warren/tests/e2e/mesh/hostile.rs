//! Peers that do harm on the LAN.

use serde_json::{Value, json};
use testkit::mesh::LanPeer;

use super::kit::{LinkKind, Machine, Pair, always, listening, saying, whole};

#[tokio::test]
async fn the_server_survives_any_input_of_a_stranger() {
    let pair = Pair::new(LinkKind::Lan, 2).await;
    always(&pair.lender.mock, "yes");
    let address = pair.lender.lan_address().await;
    for greeted in [false, true] {
        let start = async || {
            let mut peer = LanPeer::dial(address).await;
            if greeted {
                peer.hello(&[], None).await;
                peer.expect("helloAck").await;
            }
            peer
        };
        let mut long = start().await;
        long.announce(u32::MAX).await;
        long.closed().await;
        let mut cut = start().await;
        cut.announce(100).await;
        cut.bytes(b"{").await;
        cut.shut().await;
        cut.closed().await;
        let mut odd = start().await;
        for text in
            ["null", "{}", "[]", "", "7", "{", "{\"hello\":null}", "\u{feff}", "{\"a\":1,\"b\":2}"]
        {
            odd.frame(text.as_bytes()).await;
        }
        odd.frame(&[0xff; 1024]).await;
        odd.frame(&[1; 64]).await;
        odd.frame("[".repeat(100_000).as_bytes()).await;
        let mut gone = start().await;
        gone.bytes(&[0x13; 3]).await;
    }
    assert_eq!(whole(&pair.asker.ask(&saying("hi", false)).await), "yes");
    pair.lender.is_healthy().await;
}

#[tokio::test]
async fn nobody_is_another_node_by_saying_so() {
    let pair = Pair::new(LinkKind::Lan, 2).await;
    always(&pair.lender.mock, "yes");
    let address = pair.lender.lan_address().await;
    let real = pair.lender.is_healthy();
    real.await;
    // The asker's id, without its key.
    let mut forged = LanPeer::dial(address).await;
    let claims = json!({"nodeID": pair.asker.id, "version": "0.1.0", "psk": false});
    let mut hello = hello_of(&forged.device);
    hello["warren"] = claims;
    forged.say(&json!({"hello": hello})).await;
    let ack = forged.expect("helloAck").await;
    assert_eq!(ack["warren"]["nodeID"], Value::from(pair.lender.id.as_str()));
    forged.frame(&[&[0x11][..], &[7; 96]].concat()).await;
    let said = Value::from(forged.closed().await).to_string();
    assert!(said.contains("linkClosed"), "{said}");
    // The real one's link is what it was.
    let peer = pair.lender.sees(&pair.asker.id, |peer| peer["link"] == "lan").await;
    assert_eq!(peer["sealed"], true);
    assert_eq!(whole(&pair.asker.ask(&saying("hi", false)).await), "yes");
}

#[tokio::test]
async fn a_flood_of_connections_is_bounded_and_others_are_served() {
    let machine = Machine::lending(listening(), 1).await;
    let address = machine.lan_address().await;
    let mut strangers = Vec::new();
    for _ in 0..40 {
        strangers.push(LanPeer::dial(address).await);
    }
    // More than one address may have at once are told so, or closed.
    let last = strangers.last_mut().expect("a stranger");
    let said = Value::from(last.closed().await).to_string();
    assert!(said.contains("linkClosed"), "{said}");
    machine.is_healthy().await;
    always(&machine.mock, "yes");
    assert_eq!(whole(&machine.ask(&saying("hi", false)).await), "yes");
}

fn hello_of(device: &str) -> Value {
    json!({
        "deviceInfo": {
            "id": device, "name": "x", "registeredAt": 0, "lastSeenAt": 0, "isCurrentDevice": true,
            "loadedModels": [], "hardware": {
                "chipFamily": "unknown", "chipName": "x", "totalRAMGB": 1, "gpuCoreCount": 0,
                "memoryBandwidthGBs": 1, "tier": 4,
            },
        },
        "protocolVersion": 1, "loadedModels": [],
    })
}
