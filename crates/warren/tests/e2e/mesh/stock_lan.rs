//! Stock peers on the LAN: a Mac that asks and one that is asked, and messages as they come.

use serde_json::{Value, json};
use testkit::{
    DEADLINE,
    chat::said,
    eventually,
    mesh::{FakeMac, LanPeer, Script},
};

use super::kit::{Machine, always, listening, saying, whole};
use crate::common::assert_fields;

const MAC_MODEL: &str = "mlx-community/Qwen3-8B-4bit";

fn for_mac(stream: bool) -> Value {
    json!({"model": MAC_MODEL, "stream": stream, "top_k": 3,
        "messages": [{"role": "user", "content": "hi"}]})
}

/// A Warren that is linked to a Mac, which says this.
async fn with_mac(text: &str) -> (Machine, FakeMac, testkit::mesh::MacLink) {
    let mac = FakeMac::start(Script::new(MAC_MODEL, text)).await;
    let settings = listening().set("--mesh-peer", &mac.address().to_string());
    let machine = Machine::start(settings).await;
    let link = mac.link().await;
    let linked = async || machine.peers().await.iter().any(|peer| peer["status"] == "ok");
    eventually("a link to the Mac", DEADLINE, linked).await;
    (machine, mac, link)
}

#[tokio::test]
async fn a_mac_is_asked_in_its_own_form() {
    let (machine, _mac, link) = with_mac("hello from a mac").await;
    let peer = machine.peers().await.remove(0);
    assert_fields(&peer, &json!({"sealed": false, "warren": null, "name": "Studio"}));
    let answer = machine.ask(&for_mac(true)).await.text();
    assert_eq!(said(&answer), "hello from a mac");
    assert_eq!(whole(&machine.ask(&for_mac(false)).await), "hello from a mac");
    let asked = link.hears("inferenceRequest", 2).await;
    assert!(asked.iter().all(|body| body["request"]["top_k"] == 3 && body["streaming"] == true));
    link.hears("heartbeat", 1).await;
    assert!(link.dropped().is_empty(), "{:?}", link.dropped());
}

#[tokio::test]
async fn messages_in_either_form_are_answered_in_the_form_they_came_in() {
    let lender = Machine::lending(listening(), 2).await;
    always(&lender.mock, "yes");
    let mut stock = LanPeer::greeted(lender.lan_address().await).await;
    let id = "0B1C2D3E-4F50-4172-8394-A5B6C7D8E9F0";
    let request = json!({"requestID": id, "request": saying("1", true), "streaming": true});
    stock.say(&json!({"inferenceRequest": {"_0": request.clone()}})).await;
    assert_eq!(stock.expect("inferenceComplete").await["requestID"], id);
    stock.say(&json!({"inferenceRequest": request})).await;
    stock.expect("inferenceComplete").await;
    for (asked, answered) in [
        (json!({"modelQuery": {"_0": {"modelID": "none/none"}}}), "modelQueryResponse"),
        (json!({"loadModel": {"_0": {"requestID": id, "modelID": "m"}}}), "modelLoadError"),
        (
            json!({"hello": {"_0": {"deviceInfo": {"id": stock.device}, "protocolVersion": 7}}}),
            "helloAck",
        ),
        (json!({"inferenceRequest": {"_0": {"requestID": id}}}), "inferenceError"),
        (json!({"inferenceRequest": {"_0": {"requestID": id, "request": 7}}}), "inferenceError"),
    ] {
        stock.say(&asked).await;
        stock.expect(answered).await;
    }
    // None of these asks anything.
    for unknown in [
        json!({"groupMessage": {"_0": {"data": "e30="}}}),
        json!({"somethingNew": {"_0": {}}}),
        json!({"heartbeatAck": {"_0": {"thermalLevel": "lukewarm"}}}),
    ] {
        stock.say(&unknown).await;
    }
    stock
        .say(&json!({"inferenceRequest": {"_0": {
            "requestID": id, "request": saying("2", true), "streaming": true, "_1": null,
        }}}))
        .await;
    stock.expect("inferenceComplete").await;
}
