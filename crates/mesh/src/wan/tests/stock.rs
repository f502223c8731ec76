//! A stock relay and stock peers, frame for frame.

use std::time::Duration;

use protocol::mesh::{ClusterMessage, WireId, cluster::InferenceCancel, relay::ForwardKind};
use seal::{offer_text, register_text, verify_hex};
use serde_json::{Value, json};
use testkit::{DEADLINE, eventually, within};
use tokio::time::{Instant, sleep};

use super::kit::{Machine, bytes_of};
use crate::wan::{
    connection::ConnectionEnd,
    fake::{FakeNode, NodeEvent},
};

fn stock_node() -> (base::NodeId, Value) {
    let capabilities =
        json!({"isAvailable": true, "loadedModels": ["qwen/qwen3-8b"], "maxConcurrentRequests": 2});
    (FakeNode::new(7).id(), capabilities)
}

fn warren() -> (base::NodeId, Value) {
    (
        FakeNode::new(2).id(),
        json!({"isAvailable": true, "warren": {"mesh": 2, "version": "0", "psk": false}}),
    )
}

fn cancel(id: &str) -> ClusterMessage {
    ClusterMessage::InferenceCancel(InferenceCancel { request_id: WireId::from(id) })
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_at_a_stock_relay_as_stock_nodes_do() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(0x11));
    let register = relay.heard().await["register"].clone();
    let id = "d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737";
    assert_eq!((&register["nodeID"], &register["publicKey"]), (&json!(id), &json!(id)));
    let wg = "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13";
    assert_eq!(register["wgPublicKey"], wg);
    let signature = register["signature"].as_str().unwrap();
    assert!(signature.starts_with("b4f0655ba1a8cb4f"));
    assert!(verify_hex(&machine.id(), &register_text(&machine.id()), signature));
    assert_eq!(register["capabilities"]["loadedModels"], json!(["model-17"]));
    relay.says(format!(
        r#"{{"registerAck":{{"nodeID":"{id}","registeredAt":1.5,"ttlSeconds":300}}}}"#
    ));
    assert_eq!(relay.heard().await, json!({"discover": {"requestingNodeID": id}}));
    assert!(!machine.status.get().challenged && machine.status.get().registered);
}

#[tokio::test(start_paused = true)]
async fn the_flow_of_a_stock_gateway_is_served() {
    let mut node = FakeNode::new(1);
    node.echoes = true;
    let (machine, mut relay) = Machine::at_stock(node);
    let (gateway, capabilities) = stock_node();
    relay.registers(&[(gateway, capabilities)]).await;
    for session in ["39bd65db-a", "39bd65db-b"] {
        relay.forwards(ForwardKind::RelayOpen, &gateway, session);
        let ready = relay.heard_of("relayReady").await;
        assert_eq!(
            ready,
            json!({"fromNodeID": machine.id(), "sessionID": session, "toNodeID": gateway})
        );
    }
    for session in ["39bd65db-b", "39bd65db-a"] {
        let request = format!(r#"{{"inferenceCancel":{{"_0":{{"requestID":"{session}"}}}}}}"#);
        relay.forwards_data(&gateway, session, request.as_bytes());
        let answer = relay.heard_of("relayData").await;
        assert_eq!((&answer["sessionID"], &answer["toNodeID"]), (&json!(session), &json!(gateway)));
        // In the form in which it came.
        assert_eq!(bytes_of(&answer), request.as_bytes());
    }
    relay.forwards(ForwardKind::RelayClose, &gateway, "39bd65db-b");
    machine.loses(gateway).await;
    assert_eq!((machine.opened(), machine.closed().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stock_node_is_asked_in_one_session_in_the_wrapped_form() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (node, capabilities) = stock_node();
    relay.registers(&[(node, capabilities)]).await;
    machine.lists(node).await;
    let wanted = machine.wants(node).await;
    let open = relay.heard_of("relayOpen").await;
    let session = open["sessionID"].as_str().unwrap().to_owned();
    relay.forwards(ForwardKind::RelayReady, &node, &session.to_uppercase());
    let link = within("a link", wanted).await.unwrap().unwrap();
    assert!(!link.sealed && !link.proved);
    let beat = bytes_of(&relay.heard_of("relayData").await);
    assert!(beat.starts_with(br#"{"heartbeat":{"_0":"#));
    link.tell(&cancel("r")).unwrap();
    let data = relay.heard_of("relayData").await;
    assert_eq!(bytes_of(&data), br#"{"inferenceCancel":{"_0":{"requestID":"r"}}}"#);
    relay.forwards_data(&node, &session, br#"{"heartbeatAck":{"_0":{"deviceID":"e1ec2fdc"}}}"#);
    machine
        .hears(
            "the answer",
            |event| matches!(event, NodeEvent::Received(_, text) if text.contains("e1ec2fdc")),
        )
        .await;
    link.close("nothing else runs on it");
    assert_eq!(relay.heard_of("relayClose").await["sessionID"], session);
}

#[tokio::test(start_paused = true)]
async fn a_stock_macs_offer_is_answered_and_its_session_taken() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (mac, capabilities) = stock_node();
    relay.registers(&[(mac, capabilities)]).await;
    let (own, session) = (machine.id(), "518C794F-0000-4000-8000-000000000000");
    let offer = json!({"offer": {"fromNodeID": mac, "toNodeID": own, "sessionID": session, "signature": "82354ce2",
        "connectionInfo": {"publicIP": "127.0.0.1", "publicPort": 1, "natType": "unknown", "wgPublicKey": "6db4eb0d"}}});
    relay.says(offer.to_string());
    let answer = relay.heard_of("answer").await;
    assert_eq!((&answer["fromNodeID"], &answer["toNodeID"]), (&json!(own), &json!(mac)));
    assert_eq!(
        (&answer["sessionID"], &answer["connectionInfo"]["natType"]),
        (&json!(session), &json!("unknown"))
    );
    let text = offer_text(&own.to_string(), &mac.to_string(), session);
    assert!(verify_hex(&own, &text, answer["signature"].as_str().unwrap()));
    relay.says(format!(r#"{{"iceCandidate":{{"fromNodeID":"{mac}","toNodeID":"{own}","sessionID":"{session}","candidate":{{"ip":"127.0.0.1","port":1,"type":"host","priority":100}}}}}}"#));
    relay.forwards(ForwardKind::RelayOpen, &mac, session);
    assert_eq!(relay.heard_of("relayReady").await["sessionID"], session);
    // A Mac may wait fifteen seconds before it says anything.
    sleep(Duration::from_secs(15)).await;
    relay.forwards_data(&mac, session, br#"{"heartbeat":{"_0":{}}}"#);
    machine
        .hears("the session", |event| {
            matches!(event, NodeEvent::Opened { sealed: false, proved: false, .. })
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_not_there_is_told_at_once_and_taken_off_the_list() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (node, capabilities) = stock_node();
    relay.registers(&[(node, capabilities)]).await;
    machine.lists(node).await;
    let wanted = machine.wants(node).await;
    relay.heard_of("relayOpen").await;
    relay.says(format!(
        r#"{{"error":{{"code":"peer_not_found","message":"Peer {node} is not connected"}}}}"#
    ));
    let why = within("an answer", wanted).await.unwrap().unwrap_err();
    assert!(why.0.contains("not connected"), "{why}");
    machine.hears("that it is gone", |event| *event == NodeEvent::Unlisted(node)).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_answer_is_given_up_after_ten_seconds() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (node, capabilities) = stock_node();
    relay.registers(&[(node, capabilities)]).await;
    machine.lists(node).await;
    let start = Instant::now();
    let why = machine.link(node).await.unwrap_err();
    assert!(why.0.contains("in time") && start.elapsed().as_secs() == 10, "{why}");
    relay.heard_of("relayClose").await;
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_freezes_is_noticed_within_thirty_seconds() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[stock_node()]).await;
    machine.lists(stock_node().0).await;
    relay.freezes().await;
    let start = Instant::now();
    let ended = machine.ended.await.unwrap();
    assert!(
        matches!(&ended, ConnectionEnd::Broken(why) if why.contains("says nothing")),
        "{ended:?}"
    );
    assert!((20..30).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert!(machine.node.events().contains(&NodeEvent::Unlisted(stock_node().0)));
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_only_answers_pings_is_no_dead_one() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[]).await;
    sleep(Duration::from_secs(300)).await;
    assert!(!machine.ended.is_finished());
}

#[tokio::test(start_paused = true)]
async fn another_registration_with_the_same_key_is_told_from_a_broken_relay() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[]).await;
    relay.closes(1012, "Replaced by newer session").await;
    assert_eq!(machine.ended.await.unwrap(), ConnectionEnd::Replaced);
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_refuses_the_registration_says_why() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.heard_of("register").await;
    relay.says(r#"{"error":{"code":"not_admitted","message":"members only"}}"#);
    let ended = machine.ended.await.unwrap();
    assert!(
        matches!(&ended, ConnectionEnd::Broken(why) if why.contains("members only")),
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_limits_rates_is_left_in_peace_for_as_long_as_it_says() {
    let (_machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[]).await;
    let start = Instant::now();
    relay.says(r#"{"error":{"code":"rate_limited","message":"slow down","retryAfterSeconds":90}}"#);
    relay.heard_of("discover").await;
    assert!(start.elapsed().as_secs() >= 90, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nonsense_of_a_relay_is_counted_and_harms_nothing() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[stock_node()]).await;
    let (own, peer) = (machine.id(), stock_node().0);
    for nonsense in [
        "null",
        "{}",
        "[]",
        "7",
        "no json",
        r#"{"relayData":null}"#,
        r#"{"unknown":{}}"#,
        r#"{"error":null}"#,
        r#"{"discoverResponse":{"peers":[7,{"nodeID":5},{"nodeID":"gateway"},{}]}}"#,
        r#"{"peerLeft":{}}"#,
    ] {
        relay.says(nonsense);
    }
    relay.says(format!(
        r#"{{"relayOpen":{{"fromNodeID":"{own}","toNodeID":"{own}","sessionID":"s"}}}}"#
    ));
    relay.says(format!(
        r#"{{"relayOpen":{{"fromNodeID":"gateway","toNodeID":"{own}","sessionID":"s"}}}}"#
    ));
    relay.says(format!(r#"{{"relayData":{{"fromNodeID":"{peer}","toNodeID":"{peer}","sessionID":"s","data":"e30="}}}}"#));
    relay.outbox.push(bytes::Bytes::from_static(b"\xff\xfe")).unwrap();
    relay.lists(&[stock_node()]);
    relay.forwards(ForwardKind::RelayOpen, &peer, "s");
    assert_eq!(relay.heard_of("relayReady").await["sessionID"], "s");
    let bad = |what| machine.node.bad(what);
    assert_eq!((bad("a relay's message"), bad("id is no key"), bad("of nobody")), (9, 2, 3));
    assert_eq!((bad("no text"), machine.opened()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_swallows_what_a_warren_says_loses_the_session_within_thirty_seconds() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let peer = FakeNode::new(2);
    relay.registers(&[warren()]).await;
    machine.lists(peer.id()).await;
    let wanted = machine.wants(peer.id()).await;
    let session = relay.heard_of("relayOpen").await["sessionID"].as_str().unwrap().to_owned();
    relay.forwards(ForwardKind::RelayReady, &peer.id(), &session);
    let first = bytes_of(&relay.heard_of("relayData").await);
    assert_eq!(first[0], 0x11);
    let prologue = seal::prologue::relay(&machine.id(), &peer.id(), &session);
    let mut noise = seal::Responder::new(&peer.machine.identity, None, &prologue).unwrap();
    noise.read(&first[1..], &machine.id()).unwrap();
    let hello = crate::greeting::write(peer.machine.facts.hello(true), ClusterMessage::HelloAck);
    let (second, _) = noise.finish(&hello).unwrap();
    relay.forwards_data(&peer.id(), &session, &[&[0x12], &second[..]].concat());
    let link = within("a link", wanted).await.unwrap().unwrap();
    sleep(Duration::from_secs(17)).await;
    assert!(!link.is_usable() && !link.is_closed());
    sleep(Duration::from_secs(15)).await;
    assert!(link.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_reads_nothing_holds_up_answers_and_no_memory_grows() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (node, capabilities) = stock_node();
    relay.registers(&[(node, capabilities)]).await;
    machine.lists(node).await;
    let wanted = machine.wants(node).await;
    let session = relay.heard_of("relayOpen").await["sessionID"].as_str().unwrap().to_owned();
    relay.forwards(ForwardKind::RelayReady, &node, &session);
    let link = within("a link", wanted).await.unwrap().unwrap();
    relay.freezes().await;
    let chunk = cancel(&"x".repeat(50_000));
    let mut said = 0;
    while let Ok(sent) = tokio::time::timeout(Duration::from_secs(1), link.say(&chunk)).await {
        sent.unwrap();
        said += 1;
        assert!(said < 100, "nothing holds it up");
    }
    assert!(said > 4, "{said}");
}

#[tokio::test(start_paused = true)]
async fn everybody_that_comes_at_once_is_asked_for_once() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[stock_node()]).await;
    machine.lists(stock_node().0).await;
    let start = Instant::now();
    for seed in 20..40 {
        relay.says(format!(
            r#"{{"peerJoined":{{"nodeID":"{}","displayName":"B"}}}}"#,
            FakeNode::new(seed).id()
        ));
    }
    relay.heard_of("discover").await;
    assert!((4..=5).contains(&start.elapsed().as_secs()));
    relay.lists(&[stock_node()]);
    // Stock relays tell again and again of those that are listed.
    relay.says(format!(r#"{{"peerJoined":{{"nodeID":"{}","displayName":"B"}}}}"#, stock_node().0));
    relay.heard_of("discover").await;
    assert!((34..=36).contains(&start.elapsed().as_secs()));
    relay.says(format!(r#"{{"peerLeft":{{"nodeID":"{}","displayName":"B"}}}}"#, stock_node().0));
    let shown = std::sync::Arc::clone(&machine.node);
    eventually("that it left", DEADLINE, || async {
        shown.events().contains(&NodeEvent::Unlisted(stock_node().0))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn models_of_a_peer_that_was_listed_without_any_are_seen_within_seconds() {
    let (_machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    let (peer, models) = stock_node();
    relay.registers(&[(peer, json!({"isAvailable": true, "loadedModels": []}))]).await;
    let (start, joined) =
        (Instant::now(), format!(r#"{{"peerJoined":{{"nodeID":"{peer}","displayName":"B"}}}}"#));
    relay.says(joined.clone());
    relay.heard_of("discover").await;
    assert!(start.elapsed() <= Duration::from_secs(6), "{:?}", start.elapsed());
    relay.lists(&[(peer, models)]);
    // Now it has some, and stock nodes register again every 10 s.
    relay.says(joined);
    relay.heard_of("discover").await;
    assert!(start.elapsed() >= Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn models_that_come_and_go_are_told_within_seconds() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[]).await;
    let start = Instant::now();
    machine.node.serves("brand-new");
    let register = relay.heard_of("register").await;
    assert_eq!(register["capabilities"]["loadedModels"], json!(["brand-new"]));
    assert!(start.elapsed() <= Duration::from_secs(6), "{:?}", start.elapsed());
    // And not again before there is a reason.
    relay.heard_of("register").await;
    assert!(start.elapsed() >= Duration::from_secs(60), "{:?}", start.elapsed());
}
