//! Whom this machine asks, where it has a passcode, or all must be sealed.

use std::sync::Arc;

use crate::{
    link::LinkEvents,
    node::Node,
    peer::{Peer, PeerId},
    settings::Settings,
    testing::{Kind, Server, id, link, mesh, peer, settings, with_passcode},
};

fn node(server: &Server, passcode: Option<&str>, trusted: &[PeerId]) -> Arc<Node> {
    mesh(99, trusting(passcode, trusted), server).0
}

fn trusting(passcode: Option<&str>, trusted: &[PeerId]) -> Settings {
    let trusted = trusted.iter().filter_map(PeerId::node).copied().collect();
    Settings { trusted, ..passcode.map_or_else(settings, with_passcode) }
}

/// A peer with a link over which nothing was proved, as stock peers have at relays. Dropping the
/// other end would close it.
fn stranger(node: &Node, number: u8) -> (Arc<Peer>, crate::testing::FarEnd) {
    let (mut link, far) = link(&id(number), Kind::StockFar);
    Arc::get_mut(&mut link).unwrap().proved = false;
    (peer(&node.peers, &link, 1), far)
}

/// A peer that a relay lists, and that has no link.
fn listed(node: &Node, number: u8) -> Arc<Peer> {
    let peer = node.peers.meet(&id(number)).unwrap();
    peer.learn(|facts| {
        facts.models = vec!["m".to_owned()];
        (facts.available, facts.throttle) = (true, 100);
    });
    peer.set_listed(&"relay.test".into(), true);
    peer
}

fn providers(server: &Server) -> usize {
    server.scheduler.status().workers.len()
}

#[tokio::test]
async fn with_a_passcode_peers_that_have_not_proved_it_are_asked_nothing() {
    let server = Server::new();
    let node = node(&server, Some("swift"), &[]);
    let (stranger, _far) = stranger(&node, 1);
    node.changed(&stranger);
    let listed = listed(&node, 2);
    node.changed(&listed);
    assert_eq!(providers(&server), 0, "they proved nothing");
    // A Warren has to, before it is linked to.
    listed.learn(|facts| facts.warren = Some("1".to_owned()));
    node.changed(&listed);
    assert_eq!(providers(&server), 1);
    // It turns out not to be one.
    let (mut link, _end) = link(&id(2), Kind::StockFar);
    Arc::get_mut(&mut link).unwrap().proved = false;
    node.peers.link(&link, |_, _| true).unwrap();
    node.changed(&listed);
    server.has_providers(0).await;
}

#[tokio::test]
async fn with_a_passcode_trusted_peers_are_asked_and_without_one_everybody() {
    for (passcode, trusted) in [(Some("swift"), vec![id(2)]), (None, Vec::new())] {
        let server = Server::new();
        let node = node(&server, passcode, &trusted);
        node.changed(&listed(&node, 2));
        assert_eq!(providers(&server), 1, "{passcode:?}");
        let (stranger, _far) = stranger(&node, 1);
        node.changed(&stranger);
        let expected = if passcode.is_some() { 1 } else { 2 };
        assert_eq!(providers(&server), expected, "{passcode:?}");
    }
}

#[tokio::test]
async fn where_all_must_be_sealed_stock_nodes_that_a_relay_lists_are_not_asked() {
    let trusted = [id(2), id(3)];
    for (passcode, trusted) in [(None, &[][..]), (Some("swift"), &trusted[..])] {
        let server = Server::new();
        let settings = Settings { require_sealed: true, ..trusting(passcode, trusted) };
        let node = mesh(99, settings, &server).0;
        node.changed(&listed(&node, 2));
        assert_eq!(providers(&server), 0, "it can seal nothing");
        let warren = listed(&node, 3);
        warren.learn(|facts| facts.warren = Some("1".to_owned()));
        node.changed(&warren);
        assert_eq!(providers(&server), 1, "{passcode:?}");
    }
}
