//! Stock peers behind relays, and relays that are stock, or hostile.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Gate, Reply, eventually,
    mesh::{
        FakeGateway, FakeMeshNode, FakeStockRelay, GatewayFailure, Hostile, MeshKey, NodeSettings,
        RelaySocket, Script,
    },
};

use tokio::time::timeout;

use super::{
    kit::{Machine, RelayProcess, always, delta, saying, serves, streamed, whole, words},
    wire::Wire,
};
use crate::common::{CHAT, serve};

/// How long an answer is waited for while a relay meddles with it.
const MEDDLED: Duration = Duration::from_secs(2);

fn at(relay: &str) -> testkit::Serve {
    serve().set("--mesh-relay", relay).set("--mesh-share", "anyone")
}

/// A machine that lends `m` and had it when it came to the relay.
async fn lender_at(relay: std::net::SocketAddr) -> (Machine, Wire) {
    let door = Wire::cut_to(relay).await;
    let lender = Machine::lending(at(&format!("ws://{}/ws", door.name())), 2).await;
    door.mend();
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
async fn a_gateway_that_closes_its_session_has_its_request_aborted_and_is_ready_meanwhile() {
    let relay = RelayProcess::start(&[]).await;
    let (lender, _door) = lender_at(relay.address).await;
    let gateway = FakeGateway::start(relay.address, 7).await;
    gateway.sees(&lender.id, "m").await;
    let gate = Gate::closed();
    lender.mock.then(words(&["one", "two"], &gate));
    let mut session = gateway.open(&lender.id).await.expect("it is ready");
    session.ask(&saying("1", true)).await;
    lender.mock.request().await;
    gate.open(1);
    assert_eq!(session.hear().await.expect("a chunk").0, "inferenceChunk");
    always(&lender.mock, "beside");
    let beside = gateway.ask(&lender.id, &saying("2", true)).await.expect("an answer");
    assert_eq!(beside.text(), "beside");
    session.close().await;
    lender.mock.aborted(1).await;
}

#[tokio::test]
async fn a_stock_node_is_asked_through_our_relay_and_through_a_stock_one() {
    let (ours, stock) = (RelayProcess::start(&[]).await, FakeStockRelay::start().await);
    for (relay, url) in [(ours.address, ours.url()), (stock.address(), stock.url())] {
        let node = FakeMeshNode::start(relay, NodeSettings::new(9, "m")).await;
        let asker = Machine::start(at(&url)).await;
        asker.sees(node.id(), serves).await;
        let mut request = saying("hi", true);
        request["top_k"] = json!(3);
        let answer = asker.ask(&request).await;
        assert_eq!(streamed(&answer.text()), "t0 t1 t2", "{}", answer.text());
        assert_eq!(whole(&asker.ask(&saying("hi", false)).await), "t0 t1 t2");
        let asked = node.hears("inferenceRequest", 2).await;
        assert_eq!(asked[0]["request"]["top_k"], 3);
        assert!(node.dropped().is_empty(), "{:?}", node.dropped());
    }
}

/// Waits until a machine knows that a node has a model.
async fn knows(asker: &Machine, node: &FakeMeshNode, model: &str) {
    let knows = async || asker.peer(node.id()).await.is_some_and(|peer| peer["models"][0] == model);
    eventually("a node with its model", DEADLINE, knows).await;
}

/// A request for another model than usual.
fn of(model: &str, stream: bool) -> Value {
    let mut request = saying("hi", stream);
    request["model"] = json!(model);
    request
}

#[tokio::test]
async fn an_error_of_a_stock_node_is_told_and_hanging_up_closes_its_session() {
    let relay = FakeStockRelay::start().await;
    let failing = Script::text("one two").fail("internal_error", "backend returned 500");
    let settings = NodeSettings { script: failing, ..NodeSettings::new(9, "m") };
    let node = FakeMeshNode::start(relay.address(), settings).await;
    let asker = Machine::start(at(&relay.url())).await;
    asker.sees(node.id(), serves).await;
    let answer = asker.ask(&saying("hi", true)).await.text();
    assert!(answer.contains("backend returned 500") && !answer.contains("[DONE]"), "{answer}");

    let words = r#"backend returned 400 Bad Request: {"error":{"message":"too long"}}"#;
    let refusing = Script::text("").fail("internal_error", words).at_once();
    let settings = NodeSettings { script: refusing, ..NodeSettings::new(12, "refusing") };
    let refusing = FakeMeshNode::start(relay.address(), settings).await;
    knows(&asker, &refusing, "refusing").await;
    for _ in 0..5 {
        // This is not the node's fault, however often it happens.
        let answer = asker.ask(&of("refusing", true)).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["message"].as_str()),
            (400, Some("too long"))
        );
    }

    let settings =
        NodeSettings { script: Script::text("one two").die(), ..NodeSettings::new(11, "dying") };
    let dying = FakeMeshNode::start(relay.address(), settings).await;
    knows(&asker, &dying, "dying").await;
    for (stream, status) in [(true, 200), (false, 502)] {
        let answer = asker.ask(&of("dying", stream)).await;
        let text = answer.text();
        assert_eq!(answer.status, status, "{text}");
        assert!(text.contains("error") && !text.contains("[DONE]"), "{text}");
    }

    let gate = Gate::closed();
    let settings = NodeSettings {
        script: Script::text("one two").gate(&gate),
        ..NodeSettings::new(10, "slow")
    };
    let slow = FakeMeshNode::start(relay.address(), settings).await;
    knows(&asker, &slow, "slow").await;
    let asked = asker.client().post(CHAT, &of("slow", true)).open().await;
    let mut answer = asked.answer().await;
    answer.next_chunk().await.expect("the first word");
    drop(answer);
    let closed = async || {
        let mut all = relay.forwarded().into_iter();
        all.any(|one| one.kind == "relayClose" && one.to == slow.id())
    };
    eventually("the session being closed", DEADLINE, closed).await;
}

#[tokio::test]
async fn a_stock_relay_reads_nothing_of_what_warrens_say_and_cannot_change_it() {
    let relay = FakeStockRelay::start().await;
    let (lender, _door) = lender_at(relay.address()).await;
    let asker = Machine::start(at(&relay.url())).await;
    asker.sees(&lender.id, serves).await;
    always(&lender.mock, "answersecret");
    let asked = asker.ask(&saying("questionsecret", false)).await;
    assert_eq!(whole(&asked), "answersecret");
    let carried: Vec<u8> = relay.forwarded().into_iter().flat_map(|one| one.data).collect();
    let carried = String::from_utf8_lossy(&carried);
    assert!(!carried.contains("secret") && !carried.contains("\"m\""), "in the clear");
    assert!(!carried.is_empty());
    for how in [Hostile::Replay, Hostile::Flip, Hostile::Truncate, Hostile::Honest] {
        relay.meddle(how.clone());
        let question = saying("questionsecret", false);
        let answer = asker.ask(&question);
        // Whatever is done to it, nothing wrong is ever taken for an answer.
        match (&how, timeout(MEDDLED, answer).await) {
            (Hostile::Replay, answer) => {
                assert_eq!(whole(&answer.expect("in time")), "answersecret");
            }
            (_, Ok(answer)) if answer.status == 200 => assert_eq!(whole(&answer), "answersecret"),
            _ => {}
        }
    }
    let again = async || asker.ask(&saying("hi", false)).await.status == 200;
    eventually("an answer when the relay is honest again", DEADLINE, again).await;
    asker.is_healthy().await;
    lender.is_healthy().await;
}

#[tokio::test]
async fn forged_messages_at_our_relay_are_not_believed_and_the_relay_stays() {
    let relay = RelayProcess::start(&[]).await;
    let (lender, _door) = lender_at(relay.address).await;
    let key = MeshKey::new([3; 32]);
    let mut socket = RelaySocket::open(relay.address, &key.id()).await;
    for text in
        ["null", "{}", "[]", "7", "{\"relayData\":null}", "{\"register\":{\"nodeID\":5}}", "{"]
    {
        socket.text(text).await;
    }
    // Another's name, with a signature of one's own.
    let mut forged = RelaySocket::open(relay.address, &lender.id).await;
    let (id, signature) = (&lender.id, key.sign(&lender.id));
    forged
        .say(&json!({"register": {
            "nodeID": id, "publicKey": id, "displayName": "x", "signature": signature,
            "capabilities": {"isAvailable": true, "loadedModels": []},
        }}))
        .await;
    let refused = forged.expect("error").await;
    assert!(refused["message"].is_string(), "{refused}");
    // A sender that one is not.
    let mut honest = RelaySocket::registered(relay.address, &key, &[]).await;
    honest
        .say(&json!({"relayOpen": {
            "fromNodeID": lender.id, "toNodeID": lender.id, "sessionID": "s",
        }}))
        .await;
    let nobody = "00".repeat(32);
    honest.forward("relayOpen", &nobody, "s").await;
    let words = format!("Peer {nobody} is not connected");
    loop {
        let error = honest.expect("error").await;
        if error["code"] == "peer_not_found" {
            assert_eq!(error["message"], words);
            break;
        }
    }
    let asker = Machine::start(at(&relay.url())).await;
    asker.sees(&lender.id, serves).await;
    always(&lender.mock, "yes");
    assert_eq!(whole(&asker.ask(&saying("hi", false)).await), "yes");
    assert!(lender.told().await["relays"][0]["challenged"] == true);
}
