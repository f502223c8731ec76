//! Warrens at a Warren's relay.

use std::time::Duration;

use protocol::mesh::{ClusterMessage, WireId, cluster::InferenceCancel};
use testkit::{DEADLINE, eventually, within};
use tokio::time::sleep;

use super::kit::{Machine, relay, two};
use crate::{
    link::Carrier,
    peer::PeerId,
    testing::{self, Kind},
    wan::{
        connection::ConnectionEnd,
        fake::{FakeNode, NodeEvent},
    },
};

fn cancel(id: &str) -> ClusterMessage {
    ClusterMessage::InferenceCancel(InferenceCancel { request_id: WireId::from(id) })
}

fn is_heartbeat(text: &str) -> bool {
    text.contains("\"heartbeat")
}

#[tokio::test(start_paused = true)]
async fn two_nodes_find_each_other_and_speak_sealed() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    assert!(one.status.get().registered && one.status.get().challenged);
    let link = one.link(other.id()).await.unwrap();
    assert!(link.sealed && link.warren && link.proved && link.opened_here);
    assert_eq!(link.carrier, Carrier::Relay("relay.test".into()));
    link.tell(&cancel("r-1")).unwrap();
    other
        .hears(
            "what was said",
            |event| matches!(event, NodeEvent::Received(_, text) if text.contains("r-1")),
        )
        .await;
    other.node.link().unwrap().tell(&cancel("r-2")).unwrap();
    one.hears(
        "what was said",
        |event| matches!(event, NodeEvent::Received(_, text) if text.contains("r-2")),
    )
    .await;
    let hello = Some(
        one.node
            .events()
            .iter()
            .any(|event| matches!(event, NodeEvent::Opened { hello: Some(_), .. })),
    );
    assert_eq!(hello, Some(true));
    assert_eq!((one.status.get().sessions, one.status.get().listed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_peer_whose_models_change_is_listed_anew_within_seconds() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    // All of the beginning has been told.
    sleep(Duration::from_secs(30)).await;
    let listed = || {
        let events = one.node.events();
        events
            .iter()
            .filter(|event| matches!(event, NodeEvent::Listed(id, _) if *id == other.id()))
            .count()
    };
    let before = listed();
    other.node.serves("brand-new");
    sleep(Duration::from_secs(11)).await;
    assert_eq!(listed(), before + 1);
}

#[tokio::test(start_paused = true)]
async fn everybody_who_asks_for_a_link_at_once_gets_the_same_one() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let wanted = [one.wants(other.id()).await, one.wants(other.id()).await];
    let mut numbers = Vec::new();
    for answered in wanted {
        numbers.push(within("a link", answered).await.unwrap().unwrap().number);
    }
    numbers.push(one.link(other.id()).await.unwrap().number);
    numbers.dedup();
    assert_eq!((numbers.len(), one.opened()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn when_both_ends_open_at_once_both_get_the_one_session() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let (first, second) = (one.wants(other.id()).await, other.wants(one.id()).await);
    let first = within("a link", first).await.unwrap().unwrap();
    let second = within("a link", second).await.unwrap().unwrap();
    assert_ne!(first.opened_here, second.opened_here);
    assert_eq!((one.opened(), other.opened()), (1, 1));
    first.tell(&cancel("r-1")).unwrap();
    other
        .hears(
            "what was said",
            |event| matches!(event, NodeEvent::Received(_, text) if text.contains("r-1")),
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn long_messages_arrive_whole_and_small_ones_pass_them() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let link = one.link(other.id()).await.unwrap();
    let long = "x".repeat(600_000);
    let sender = std::sync::Arc::clone(&link);
    let said = [1, 2, 3].map(|number| cancel(&format!("{number}{long}")));
    let sending = tokio::spawn(async move {
        for message in &said {
            sender.say(message).await.unwrap();
        }
    });
    link.tell(&cancel("small")).unwrap();
    let received = || {
        let received = other.node.received();
        received.into_iter().filter(|text| !is_heartbeat(text)).collect::<Vec<_>>()
    };
    eventually("all of it", DEADLINE, || async { received().len() == 4 }).await;
    sending.await.unwrap();
    let received = received();
    let order: Vec<_> = received
        .iter()
        .filter(|text| text.len() > 1_000)
        .map(|text| text.split(['"', 'x']).nth(5).unwrap())
        .collect();
    assert_eq!(order, ["1", "2", "3"]);
    assert!(received[..3].iter().any(|text| text.contains("small")));
}

#[tokio::test(start_paused = true)]
async fn when_the_relay_ends_so_does_all_that_went_over_it() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let link = one.link(other.id()).await.unwrap();
    relay.shut_down();
    let ended = within("the end", one.ended).await.unwrap();
    assert!(matches!(&ended, ConnectionEnd::Broken(why) if why.contains("1001")), "{ended:?}");
    assert!(link.is_closed());
    let events = one.node.events();
    assert!(events.contains(&NodeEvent::Unlisted(other.id())), "{events:?}");
    assert!(
        events
            .iter()
            .any(|event| matches!(event, NodeEvent::Closed(_, why) if why.contains("relay")))
    );
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_stops_says_goodbye() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    one.link(other.id()).await.unwrap();
    other.hears("the link", |event| matches!(event, NodeEvent::Opened { .. })).await;
    other.stop.cancel();
    assert_eq!(within("the end", other.ended).await.unwrap(), ConnectionEnd::Stopped);
    one.loses(other.node.id()).await;
    assert!(one.closed()[0].contains("this node stops"), "{:?}", one.closed());
    one.hears("that it left", |event| matches!(event, NodeEvent::Unlisted(_))).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_uses_is_kept_for_five_minutes_with_heartbeats_and_closed_then() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let link = one.link(other.id()).await.unwrap();
    sleep(Duration::from_secs(295)).await;
    assert!(link.is_usable());
    let beats = other.node.received().iter().filter(|text| is_heartbeat(text)).count();
    assert!((29..=31).contains(&beats), "{beats}");
    sleep(Duration::from_secs(10)).await;
    assert!(link.is_closed());
    other.loses(one.id()).await;
    assert!(other.closed()[0].contains("nobody used it"), "{:?}", other.closed());
}

#[tokio::test(start_paused = true)]
async fn a_session_beside_a_direct_link_is_closed_when_it_falls_silent() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let link = one.link(other.id()).await.unwrap();
    let (direct, _far) = testing::link(&PeerId::Node(other.id()), Kind::WarrenNear);
    one.node.peers.link(&direct, |_, _| true).unwrap();
    sleep(Duration::from_secs(8)).await;
    link.tell(&cancel("still in use")).unwrap();
    sleep(Duration::from_secs(8)).await;
    assert!(!link.is_closed());
    sleep(Duration::from_secs(5)).await;
    assert!(link.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_link_that_this_end_closes_ends_at_the_other_with_the_reason() {
    let relay = relay();
    let (one, other) = two(&relay).await;
    let link = one.link(other.id()).await.unwrap();
    link.tell(&cancel("last words")).unwrap();
    link.close("too slow");
    other.loses(one.id()).await;
    assert!(other.closed()[0].contains("too slow"), "{:?}", other.closed());
    assert!(other.node.received().iter().any(|text| text.contains("last words")));
    one.loses(other.id()).await;
    // And the next one is a new one.
    let next = one.link(other.id()).await.unwrap();
    assert_ne!(next.number, link.number);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_relay_does_not_know_cannot_be_reached() {
    let relay = relay();
    let (one, _other) = two(&relay).await;
    let why = one.link(FakeNode::new(9).id()).await.unwrap_err();
    assert!(why.0.contains("not connected"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn ten_nodes_all_reach_each_other() {
    let relay = relay();
    let machines: Vec<Machine> =
        (1..=10).map(|seed| Machine::at(&relay, FakeNode::new(seed))).collect();
    for one in &machines {
        for other in &machines {
            if one.id() != other.id() {
                one.lists(other.id()).await;
            }
        }
    }
    for one in &machines {
        for other in &machines {
            if one.id() != other.id() {
                one.link(other.id()).await.unwrap();
            }
        }
    }
    assert!(machines.iter().all(|machine| machine.opened() == 9));
}
