//! Which peers are let in.

use base::ClientAddress;
use http::{Request, StatusCode};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{io::AsyncReadExt as _, net::TcpListener, sync::mpsc, time::Instant};
use wire::Upgrade;

use super::{
    peer::{hello, pass},
    *,
};
use crate::{plain::greeting::DEADLINE, testing::SOON};

#[tokio::test]
async fn a_plain_peer_joins_and_is_shown() {
    let warren = warren().await;
    let peer = joined(&warren).await;
    until("it is reachable", || warren.cluster.is_reachable("plain")).await;
    let members = warren.cluster.members();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].member.name, "a plain peer");
    assert!(members[0].reachable && members[0].member.key.is_none());
    assert_eq!(warren.cluster.name_of("plain"), "a plain peer");
    drop(peer);
    until("it is gone", || !warren.cluster.is_reachable("plain")).await;
    assert!(!warren.cluster.members()[0].reachable);
}

#[tokio::test]
async fn the_wrong_token_gets_words_and_no_snapshot() {
    let warren = warren().await;
    let mut peer = Peer::connected(warren.address).await;
    let began = Instant::now();
    peer.send(&hello("plain", "wrong"));
    let ack = peer.next().await.unwrap();
    assert_eq!((&ack["type"], &ack["success"]), (&json!("peer_hello_ack"), &json!(false)));
    assert_eq!(ack["message"], "invalid cluster token");
    assert_eq!(peer.next().await, None);
    assert_eq!(peer.closed, Some(1008));
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(warren.cluster.has_refused());
    assert!(warren.cluster.members().is_empty());
}

#[tokio::test]
async fn once_the_token_is_renewed_a_plain_peer_must_greet_with_the_new_one() {
    let warren = warren().await;
    let mut peer = joined(&warren).await;
    until("it is reachable", || warren.cluster.is_reachable("plain")).await;
    crate::tokens::renew(warren.cluster.shared()).await.unwrap();
    peer.until_closed().await;
    let mut with_the_old_one = Peer::connected(warren.address).await;
    with_the_old_one.send(&hello("plain", TOKEN));
    assert_eq!(with_the_old_one.next().await.unwrap()["success"], false);
    let tokens = warren.cluster.shared().config().tokens;
    let mut with_the_new_one = Peer::connected(warren.address).await;
    with_the_new_one.send(&hello("plain", tokens.present().unwrap().secret.expose()));
    assert_eq!(with_the_new_one.next().await.unwrap()["success"], true);
}

#[tokio::test]
async fn nobody_takes_the_id_of_this_machine_or_of_a_member_with_a_key() {
    let warren = warren().await;
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    until("the other is a member", || !warren.cluster.members().is_empty()).await;
    for (node, words) in [("node-1", "same node id"), ("node-2", "sealed link")] {
        let mut peer = Peer::connected(warren.address).await;
        peer.send(&hello(node, TOKEN));
        let ack = peer.next().await.unwrap();
        assert!(
            ack["success"] == false && ack["message"].as_str().unwrap().contains(words),
            "{ack}"
        );
        assert_eq!(peer.until_closed().await, 1008);
    }
    drop(other);
}

#[tokio::test]
async fn the_first_message_is_a_greeting() {
    let warren = warren().await;
    for first in [r#"{"type":"state_snapshot","state":{}}"#, "{", "[]"] {
        let mut peer = Peer::connected(warren.address).await;
        peer.send_text(first.to_owned());
        assert_eq!(peer.next().await.unwrap()["success"], false, "{first}");
        assert_eq!(peer.until_closed().await, 1008);
    }
    let mut peer = Peer::connected(warren.address).await;
    peer.send_text("x".repeat(65 * 1024));
    peer.until_closed().await;
}

#[tokio::test]
async fn other_machines_are_refused_unless_they_are_allowed() {
    let far = ClientAddress::new([192, 168, 0, 7].into());
    let proxied = ClientAddress::new([127, 0, 0, 1].into()).by_proxy();
    for (allow_plain, from, status) in [
        (false, far, StatusCode::FORBIDDEN),
        (false, proxied, StatusCode::FORBIDDEN),
        (true, far, StatusCode::SWITCHING_PROTOCOLS),
    ] {
        let settings = Settings { allow_plain, ..settings(&[]) };
        let warren = Machine::start(1, [1; 32], settings).await;
        let mut request = Request::get("/peer")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .body(())
            .unwrap();
        assert_eq!(warren.cluster.accept(&mut request, from).status(), status);
    }
}

/// A plain peer that others dial.
async fn listening() -> (String, mpsc::Receiver<Peer>) {
    let (peers, dialled) = mpsc::channel(16);
    let address = answering("127.0.0.1:0", move |upgrade| {
        let peers = peers.clone();
        tokio::spawn(async move {
            let (link, outbox) = upgrade.link().await.unwrap();
            let _test_ended = peers.send(Peer::over(link, outbox)).await;
        });
    })
    .await;
    (address, dialled)
}

/// Answers upgrades at an address.
async fn answering(address: &str, upgraded: impl Fn(Upgrade) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let upgraded = upgraded.clone();
            let answer = service_fn(move |mut request| {
                let upgrade = Upgrade::new(&mut request, &[]).unwrap();
                let response = upgrade.response::<String>();
                upgraded(upgrade);
                async move { Ok::<_, std::convert::Infallible>(response) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), answer);
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

#[tokio::test]
async fn a_plain_peer_is_dialled_greeted_and_told_everything() {
    let (address, mut dialled) = listening().await;
    let warren = Machine::start(1, [1; 32], settings(&[address])).await;
    let mut peer = tokio::time::timeout(SOON, dialled.recv()).await.unwrap().unwrap();
    let hello = peer.next().await.unwrap();
    let expected = json!({"type": "peer_hello", "node_id": "node-1", "cluster_token": TOKEN,
        "term": 0, "display_name": "warren"});
    assert_eq!(hello, expected);
    peer.send(&json!({"type": "peer_hello_ack", "node_id": "plain", "term": 0, "success": true,
        "message": null, "display_name": "a plain peer"}));
    peer.send(&json!({"type": "state_snapshot", "term": 0,
        "state": {"sessions": {S: session(S, "plain", "theirs", 1)}}}));
    peer.until("state_snapshot").await;
    until("its session is here", || warren.has_session(S, "theirs")).await;
    assert!(warren.cluster.is_reachable("plain"));
}

#[tokio::test]
async fn a_dialled_peer_that_refuses_is_dialled_again() {
    let (address, mut dialled) = listening().await;
    let warren = Machine::start(1, [1; 32], settings(&[address])).await;
    for _ in 0..2 {
        let mut peer = tokio::time::timeout(SOON, dialled.recv()).await.unwrap().unwrap();
        peer.until("peer_hello").await;
        peer.send(&json!({"type": "peer_hello_ack", "node_id": "plain", "success": false,
            "message": "not today"}));
    }
    assert!(warren.cluster.members().is_empty());
}

#[tokio::test]
async fn a_dialled_peer_that_does_not_answer_is_let_go_in_time() {
    let (address, mut dialled) = listening().await;
    let _warren = Machine::start(1, [1; 32], settings(&[address])).await;
    let mut peer = tokio::time::timeout(SOON, dialled.recv()).await.unwrap().unwrap();
    peer.until("peer_hello").await;
    pass(DEADLINE).await;
    peer.until_closed().await;
}

#[tokio::test]
async fn a_name_is_changed_from_either_end() {
    let warren = warren().await;
    let mut peer = joined(&warren).await;
    peer.send(&json!({"type": "peer_display_name_update", "name": "other"}));
    until("its new name is shown", || warren.cluster.name_of("plain") == "other").await;
    peer.send(&json!({"type": "peer_rename_node", "name": "renamed"}));
    let update = peer.until("peer_display_name_update").await;
    assert_eq!(update["name"], "renamed");
    assert_eq!(warren.cluster.this().name, "renamed");
}

#[tokio::test]
async fn a_peer_that_does_not_greet_is_let_go_in_time() {
    let warren = warren().await;
    let mut peer = Peer::connected(warren.address).await;
    pass(DEADLINE).await;
    let answer = peer.next().await.unwrap();
    assert!(answer["message"].as_str().unwrap().contains("did not greet"), "{answer}");
    assert_eq!(peer.until_closed().await, 1008);
}

#[tokio::test]
async fn a_member_with_a_key_is_never_shown_the_token() {
    let warren = warren().await;
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    until("its key is known", || !warren.cluster.members().is_empty()).await;
    let address = other.address.to_string();
    drop(other);
    until("it is gone", || !warren.cluster.is_reachable("node-2")).await;
    // Somebody without a key listens in its place.
    let (said, mut heard) = mpsc::channel(16);
    answering(&address, move |upgrade| {
        let said = said.clone();
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            // A link that is dropped at once may not even come to stand.
            if let Ok(mut stream) = upgrade.stream().await {
                let _reset = stream.read_to_end(&mut bytes).await;
            }
            let _test_ended = said.send(bytes).await;
        });
    })
    .await;
    let bytes = tokio::time::timeout(SOON, heard.recv()).await.unwrap().unwrap();
    assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
}

#[tokio::test]
async fn a_plain_link_gives_way_to_a_member_with_a_key() {
    let warren = warren().await;
    let mut peer = Peer::greeted(&warren, "node-2").await;
    peer.until("state_snapshot").await;
    let other = Machine::start(2, [2; 32], settings(&[warren.address.to_string()])).await;
    assert_eq!(peer.until_closed().await, 1008);
    until("the member is linked", || warren.cluster.is_reachable("node-2")).await;
    assert!(warren.cluster.members()[0].member.key.is_some());
    drop(other);
}
