//! A relay on a port of its own, dialled.

use std::{net::SocketAddr, sync::Arc};

use testkit::{DEADLINE, eventually, mesh::FakeStockRelay, within};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::RunningRelay;
use crate::{
    link::NoLink,
    wan::{
        connection::Parts,
        fake::{FakeNode, NodeEvent},
        relay::{self, Relay, RelayStatus},
    },
};

/// A machine that dials a relay.
struct Dialler {
    node: Arc<FakeNode>,
    relay: Relay,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Dialler {
    fn of(seed: u8, address: SocketAddr) -> Self {
        let node = Arc::new(FakeNode::new(seed));
        let url = relay::address(&format!("ws://{address}"), &node.id()).unwrap();
        let (relay, asks) = Relay::new(&url);
        let stop = node.machine.stop.clone();
        let parts = Parts {
            machine: Arc::clone(&node.machine),
            peers: Arc::clone(&node.peers),
            events: Arc::<FakeNode>::clone(&node),
            memory: Arc::default(),
            relay: Arc::clone(&relay.host),
            status: Arc::clone(&relay.status),
        };
        let task = tokio::spawn(relay::run(url, parts, asks));
        Self { node, relay, stop, task }
    }

    #[track_caller]
    fn shows(&self, what: &str, is: impl Fn(RelayStatus) -> bool) -> impl Future<Output = ()> {
        eventually(what, DEADLINE, move || {
            let shows = is(self.relay.status());
            async move { shows }
        })
    }

    fn listed(&self) -> usize {
        self.node.events().iter().filter(|event| matches!(event, NodeEvent::Listed(..))).count()
    }
}

#[tokio::test]
async fn nodes_come_back_to_a_relay_that_was_restarted() {
    let served = RunningRelay::anywhere().await;
    let (one, other) = (Dialler::of(1, served.address), Dialler::of(2, served.address));
    one.shows("the other", |status| status.listed == 1).await;
    let link = within("a link", one.relay.link(other.node.id())).await.unwrap();
    assert!(link.sealed && one.relay.status().challenged);
    assert!(one.relay.status().connected_since_ms.is_some());
    let address = served.killed().await;
    one.shows("the end", |status| !status.registered && status.last_error.is_some()).await;
    assert!(link.is_closed());
    let no_link = within("an answer", one.relay.link(other.node.id())).await.unwrap_err();
    assert!(!no_link.0.is_empty());
    let served = RunningRelay::at(address).await;
    one.shows("the other again", |status| status.registered && status.listed == 1).await;
    assert!(one.listed() >= 2 && one.relay.status().problem.is_none());
    let next = within("a link", one.relay.link(other.node.id())).await.unwrap();
    assert_ne!(next.number, link.number);
    for dialler in [one, other] {
        dialler.stop.cancel();
        within("the end", dialler.task).await.unwrap();
    }
    served.killed().await;
}

#[tokio::test]
async fn a_stock_relay_that_agrees_to_the_subprotocol_takes_a_node_again_and_again() {
    let stock = FakeStockRelay::start().await;
    let one = Dialler::of(1, stock.address());
    one.shows("a registration", |status| status.registered).await;
    assert!(!one.relay.status().challenged);
    let address = stock.address();
    stock.stop().await;
    one.shows("the end", |status| !status.registered).await;
    let stock = FakeStockRelay::start_at(address).await;
    one.shows("a registration", |status| status.registered).await;
    assert_eq!(stock.registrations(), 1);
}

#[tokio::test]
async fn a_relay_that_was_a_warrens_is_not_taken_for_a_stock_one_afterwards() {
    let served = RunningRelay::anywhere().await;
    let one = Dialler::of(1, served.address);
    one.shows("a registration", |status| status.registered && status.challenged).await;
    let stock = FakeStockRelay::start_at(served.killed().await).await;
    let says = |status: RelayStatus| {
        status.last_error.is_some_and(|why| why.contains("sent no challenge"))
    };
    one.shows("that the challenge is missed", says).await;
    assert_eq!(stock.registrations(), 0);
}

#[tokio::test]
async fn two_machines_with_one_key_are_reported() {
    let served = RunningRelay::anywhere().await;
    let one = Dialler::of(1, served.address);
    one.shows("a registration", |status| status.registered).await;
    let other = Dialler::of(1, served.address);
    let words = "two machines cannot be one node";
    let says = |status: RelayStatus| status.problem.is_some_and(|problem| problem.contains(words));
    one.shows("the problem", says).await;
    other.shows("the problem, when the first has come back", says).await;
}

#[tokio::test]
async fn a_link_to_nobody_fails_at_once() {
    let port = testkit::RefusingPort::take();
    let one = Dialler::of(1, port.address());
    one.shows("the error", |status| {
        status.last_error.is_some_and(|why| why.contains("could not connect"))
    })
    .await;
    let NoLink(why) = within("an answer", one.relay.link(FakeNode::new(2).id())).await.unwrap_err();
    assert!(!why.contains("in time"), "{why}");
    one.stop.cancel();
    within("the end", one.task).await.unwrap();
}

#[tokio::test]
async fn a_machine_that_stops_while_it_dials_does_not_wait() {
    // Takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let one = Dialler::of(1, silent.local_addr().unwrap());
    let (stream, _) = within("a connection", silent.accept()).await.unwrap();
    let (_kept, ended) = oneshot::channel::<()>();
    one.stop.cancel();
    within("the end", one.task).await.unwrap();
    drop((stream, ended));
}
