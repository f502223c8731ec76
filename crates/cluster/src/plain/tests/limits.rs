//! Peers that go too far.

use protocol::workspace::limits::SNAPSHOT_MAX;
use replica::Kind;

use super::{
    peer::{Raw, hello},
    *,
};
use crate::plain::complaints;

const GIB: u64 = 1024 * 1024 * 1024;

async fn raw(warren: &Machine) -> Raw {
    let mut raw = Raw::connected(warren.address).await;
    raw.text(&hello("plain", TOKEN).to_string()).await;
    until("it is linked", || warren.cluster.is_reachable("plain")).await;
    raw
}

#[tokio::test]
async fn a_gigabyte_that_is_announced_is_refused_before_it_comes() {
    let warren = warren().await;
    let mut raw = raw(&warren).await;
    raw.head(1, true, GIB).await;
    raw.read_until_closed().await;
    until("it is gone", || !warren.cluster.is_reachable("plain")).await;
}

#[tokio::test]
async fn a_gigabyte_that_is_sent_in_parts_is_cut_off_at_the_bound() {
    let warren = warren().await;
    let mut raw = raw(&warren).await;
    let part = vec![b' '; 1024 * 1024];
    let (mut written, mut opcode) = (0, 1);
    let closed = loop {
        raw.head(opcode, false, part.len() as u64).await;
        let took = raw.write_until_closed(&part, part.len()).await;
        written += took;
        if took < part.len() || written > 4 * SNAPSHOT_MAX {
            break took < part.len();
        }
        if !warren.cluster.is_reachable("plain") {
            break true;
        }
        opcode = 0;
    };
    assert!(closed, "{written} bytes were taken");
    until("it is gone", || !warren.cluster.is_reachable("plain")).await;
}

#[tokio::test]
async fn a_stranger_announces_nothing_large() {
    let warren = warren().await;
    let mut raw = Raw::connected(warren.address).await;
    raw.head(1, true, 70 * 1024).await;
    raw.read_until_closed().await;
    assert!(warren.cluster.members().is_empty());
}

#[tokio::test]
async fn a_flood_of_broken_messages_ends_the_link() {
    let warren = warren().await;
    let mut peer = joined(&warren).await;
    for _ in 0..complaints::MOST {
        peer.send_text("{".to_owned());
    }
    peer.send(&update(&session(S, "plain", "theirs", 1)));
    until("a hundred are borne", || warren.has_session(S, "theirs")).await;
    peer.send_text("[]".to_owned());
    assert_eq!(peer.until_closed().await, 1008);
}

#[tokio::test]
async fn a_flood_of_updates_delays_nobody_and_keeps_the_last_word() {
    let warren = warren().await;
    let mut other = Peer::greeted(&warren, "other").await;
    other.until("state_snapshot").await;
    let peer = joined(&warren).await;
    for count in 1..=2000 {
        peer.send(&update(&session(S, "plain", &format!("name {count}"), count)));
    }
    let info = session(P, "node-1", "ours", 0)["info"].to_string();
    warren.cluster.write(Kind::SESSION, P, info).await.unwrap();
    other.until_it(|message| message["session"]["info"]["id"] == P).await;
    until("the last word counts", || warren.has_session(S, "name 2000")).await;
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_given_up_and_costs_bounded_memory() {
    let settings = Settings { heartbeat: Duration::from_millis(20), ..settings(&[]) };
    let warren = Machine::start(1, [1; 32], settings).await;
    let _raw = raw(&warren).await;
    let filler = "x".repeat(100 * 1024);
    let mut info = session(S, "node-1", "ours", 0)["info"].take();
    let mut most = 0;
    for count in 0.. {
        info["tags"] = json!([format!("{count} {filler}")]);
        warren.cluster.write(Kind::SESSION, S, info.to_string()).await.unwrap();
        most = most.max(warren.cluster.plain_waiting());
        if !warren.cluster.is_reachable("plain") && warren.cluster.plain_waiting() == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(most < 2 * 1024 * 1024, "{most} bytes waited");
}
