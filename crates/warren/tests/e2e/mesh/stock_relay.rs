//! Stock peers behind relays, and relays that are stock, or hostile.

use serde_json::json;
use testkit::{
    Gate, Reply, Way,
    chat::{delta, said},
    mesh::{FakeGateway, FakeMeshNode, FakeStockRelay, GatewayFailure, Script},
};

use super::kit::{Machine, RelayProcess, always, saying, serves, whole};
use crate::common::serve;

fn at(relay: &str) -> testkit::Serve {
    serve().set("--mesh-relay", relay).set("--mesh-share", "anyone")
}

/// A machine that lends `m` and had it when it came to the relay.
async fn lender_at(relay: std::net::SocketAddr) -> (Machine, Way) {
    let door = Way::new().await;
    let lender = Machine::lending(at(&format!("ws://{}/ws", door.address())), 2).await;
    door.lead_to(relay);
    lender.is_registered().await;
    (lender, door)
}

#[tokio::test]
async fn a_gateway_is_answered_through_our_relay_and_through_a_stock_one() {
    let (ours, stock) = (RelayProcess::start(&[]).await, FakeStockRelay::start().await);
    for relay in [ours.address, stock.address()] {
        let (lender, _door) = lender_at(relay).await;
        let gateway = FakeGateway::start(relay, 7).await;
        gateway.sees(&lender.id, "m").await;
        always(&lender.mock, "yes");
        let answer = gateway.ask(&lender.id, &saying("hi", true)).await.expect("an answer");
        assert_eq!(answer.text(), "yes");
        lender.mock.then(Reply::json(400, &json!({"error": {"message": "no"}})));
        let refused = gateway.ask(&lender.id, &saying("hi", true)).await;
        let Err(GatewayFailure::Error { error, chunks: 0 }) = refused else {
            panic!("{refused:?}")
        };
        assert!(error["errorMessage"].as_str().unwrap().starts_with("backend returned 400"));
        let none = json!({"model": "none", "messages": []});
        let refused = gateway.ask(&lender.id, &none).await;
        let Err(GatewayFailure::Error { error, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(error["code"], "model_not_loaded");
        lender.mock.then(Reply::stream([delta("a"), delta("b")], &Gate::opened()).broken());
        let broken = gateway.ask(&lender.id, &saying("hi", true)).await;
        assert!(matches!(broken, Err(GatewayFailure::Error { .. })), "{broken:?}");
    }
}

#[tokio::test]
async fn a_stock_node_is_asked_through_our_relay_and_through_a_stock_one() {
    let (ours, stock) = (RelayProcess::start(&[]).await, FakeStockRelay::start().await);
    for (relay, url) in [(ours.address, ours.url()), (stock.address(), stock.url())] {
        let node = FakeMeshNode::start(relay, 9, Script::new("m", "t0 t1 t2")).await;
        let asker = Machine::start(at(&url)).await;
        asker.sees(node.id(), serves).await;
        let mut request = saying("hi", true);
        request["top_k"] = json!(3);
        let answer = asker.ask(&request).await;
        assert_eq!(said(&answer.text()), "t0 t1 t2", "{}", answer.text());
        assert_eq!(whole(&asker.ask(&saying("hi", false)).await), "t0 t1 t2");
        let asked = node.hears("inferenceRequest", 2).await;
        assert_eq!(asked[0]["request"]["top_k"], 3);
        assert!(node.dropped().is_empty(), "{:?}", node.dropped());
    }
}
