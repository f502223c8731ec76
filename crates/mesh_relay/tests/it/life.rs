//! How long a connection lives, in paused time.

use std::time::Duration;

use mesh_relay::{InMemory, MeshRelay, Settings};
use tokio::{io::duplex, time::sleep};
use wire::{Link, Outbox, Role};

fn relay() -> MeshRelay {
    let settings = Settings { accept_unsigned: true, ..Settings::default() };
    MeshRelay::new(settings, Box::new(InMemory::default()))
}

async fn node(relay: &MeshRelay, id: &str) -> (Link, Outbox) {
    let (near, far) = duplex(1 << 16);
    let (link, outbox) = Link::new(Box::pin(near), Role::Server);
    let serving = relay.clone();
    tokio::spawn(async move { serving.serve(link, outbox, None).await });
    let (mut link, outbox) = Link::new(Box::pin(far), Role::Client);
    outbox.push(format!("{{\"register\":{{\"nodeID\":\"{id}\"}}}}")).unwrap();
    assert!(link.next().await.unwrap().is_some());
    (link, outbox)
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_sign_of_life_is_gone_within_a_minute() {
    let relay = relay();
    let (_frozen, _outbox) = node(&relay, "frozen").await;
    let (mut alive, _outbox) = node(&relay, "alive").await;
    let living = tokio::spawn(async move { alive.next().await.unwrap() });
    sleep(Duration::from_secs(44)).await;
    assert_eq!(relay.counts().registered, 2);
    sleep(Duration::from_secs(16)).await;
    assert_eq!(relay.peers().len(), 1, "{:?}", relay.peers());
    assert!(!living.is_finished(), "it answers pings, and need say nothing more");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_only_answers_pings_is_gone_when_its_registration_expires() {
    let relay = relay();
    let (mut idle, _outbox) = node(&relay, "idle").await;
    let living = tokio::spawn(async move {
        assert!(idle.next().await.unwrap().is_none());
        idle.close_reason()
    });
    sleep(Duration::from_secs(299)).await;
    assert_eq!(relay.counts().registered, 1);
    sleep(Duration::from_secs(17)).await;
    assert_eq!(relay.counts().registered, 0);
    assert_eq!(living.await.unwrap().unwrap().0, 1008);
}
