//! Whom this machine asks, where it has a passcode, or all must be sealed.

use std::sync::Arc;

use base::Secret;
use discovery::Reach;
use models::Library;
use seal::{Identity, PasscodeKey};
use store::VolatileStore;

use crate::{
    node::{Mesh, Node, Parts},
    peer::{Peer, PeerId},
    settings::Settings,
    share::Share,
    testing::{Kind, Server, id, link, peer},
};

fn node(server: &Server, passcode: Option<&str>, trusted: &[PeerId]) -> Arc<Node> {
    node_of(server, settings(passcode, trusted))
}

fn settings(passcode: Option<&str>, trusted: &[PeerId]) -> Settings {
    Settings {
        name: "box".to_owned(),
        version: "1",
        listen: None,
        passcode: passcode.map(Secret::from),
        plain_passcode: false,
        require_sealed: false,
        peers: Vec::new(),
        relays: Vec::new(),
        advertise: false,
        reach: Reach::Machine,
        share: Share::default(),
        trusted: trusted.iter().filter_map(PeerId::node).copied().collect(),
        model_dirs: Vec::new(),
        offer_found: false,
        data_dir: "/nowhere".into(),
    }
}

fn node_of(server: &Server, settings: Settings) -> Arc<Node> {
    let parts = Parts {
        identity: Identity::from_seed([99; 32]),
        psk: settings.passcode.as_ref().map(PasscodeKey::derive),
        scheduler: server.scheduler.clone(),
        usage: Arc::new(VolatileStore::default()),
        library: Arc::new(Library::default()),
        marks: crate::testing::marks(),
    };
    Mesh::new(settings, parts).0
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
    peer.listed(&"relay.test".into(), true);
    peer
}

fn seats(server: &Server) -> usize {
    server.scheduler.status().workers.len()
}

#[tokio::test]
async fn where_there_is_a_passcode_who_has_not_proved_it_is_asked_nothing() {
    let server = Server::new();
    let node = node(&server, Some("swift"), &[]);
    let (stranger, _far) = stranger(&node, 1);
    node.refresh(&stranger);
    let listed = listed(&node, 2);
    node.refresh(&listed);
    assert_eq!(seats(&server), 0, "they proved nothing");
    // A Warren has to, before it is linked to.
    listed.learn(|facts| facts.warren = Some("1".to_owned()));
    node.refresh(&listed);
    assert_eq!(seats(&server), 1);
    // It turns out not to be one.
    let (mut link, _end) = link(&id(2), Kind::StockFar);
    Arc::get_mut(&mut link).unwrap().proved = false;
    node.peers.link(&link, |_, _| true).unwrap();
    node.refresh(&listed);
    server.has_providers(0).await;
}

#[tokio::test]
async fn with_a_passcode_trusted_peers_are_asked_and_without_one_everybody() {
    for (passcode, trusted) in [(Some("swift"), vec![id(2)]), (None, Vec::new())] {
        let server = Server::new();
        let node = node(&server, passcode, &trusted);
        node.refresh(&listed(&node, 2));
        assert_eq!(seats(&server), 1, "{passcode:?}");
        let (stranger, _far) = stranger(&node, 1);
        node.refresh(&stranger);
        let expected = if passcode.is_some() { 1 } else { 2 };
        assert_eq!(seats(&server), expected, "{passcode:?}");
    }
}

#[tokio::test]
async fn where_all_must_be_sealed_stock_nodes_that_a_relay_lists_get_no_seat() {
    let trusted = [id(2), id(3)];
    for (passcode, trusted) in [(None, &[][..]), (Some("swift"), &trusted[..])] {
        let server = Server::new();
        let settings = Settings { require_sealed: true, ..settings(passcode, trusted) };
        let node = node_of(&server, settings);
        node.refresh(&listed(&node, 2));
        assert_eq!(seats(&server), 0, "it can seal nothing");
        let warren = listed(&node, 3);
        warren.learn(|facts| facts.warren = Some("1".to_owned()));
        node.refresh(&warren);
        assert_eq!(seats(&server), 1, "{passcode:?}");
    }
}
