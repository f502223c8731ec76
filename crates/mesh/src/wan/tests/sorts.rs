//! Relays that may be a Warren's: the node has to find out.

use std::time::Duration;

use seal::{challenge_text, register_text, verify_hex};
use serde_json::Value;
use tokio::time::Instant;

use super::kit::{HOST, Machine};
use crate::wan::{connection::ConnectionEnd, fake::FakeNode, sort::Sort};

const CHALLENGE: &str = r#"{"registerChallenge":{"nonce":"n0"}}"#;

/// Whether a registration is signed for the challenge. Otherwise it is signed as stock peers do.
fn is_challenged(machine: &Machine, register: &Value) -> bool {
    let (id, signature) = (machine.id(), register["signature"].as_str().unwrap());
    let stock = verify_hex(&id, &register_text(&id), signature);
    assert_ne!(stock, verify_hex(&id, &challenge_text("n0", HOST, &id), signature));
    !stock
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_agrees_to_everything_is_told_what_stock_relays_are_after_two_seconds() {
    let (machine, mut relay) = Machine::at_some(FakeNode::new(1), Sort::Unclear);
    let start = Instant::now();
    let register = relay.heard_of("register").await;
    assert_eq!(start.elapsed().as_secs(), 2);
    assert!(!is_challenged(&machine, &register));
    relay.acknowledges();
    relay.heard_of("discover").await;
    assert!(machine.status.get().registered && !machine.status.get().challenged);
    assert_eq!(machine.remembers(), Some(Sort::Stock));
}

#[tokio::test(start_paused = true)]
async fn a_warrens_challenge_is_answered_at_once_and_remembered() {
    for (sort, waits) in [(Sort::Warren, 5), (Sort::Unclear, 0), (Sort::Unclear, 1)] {
        let (machine, mut relay) = Machine::at_some(FakeNode::new(1), sort);
        let start = Instant::now();
        tokio::time::sleep(Duration::from_secs(waits)).await;
        relay.says(CHALLENGE);
        let register = relay.heard_of("register").await;
        assert!(start.elapsed() < Duration::from_secs(waits) + Duration::from_millis(10));
        assert!(is_challenged(&machine, &register));
        relay.acknowledges();
        relay.heard_of("discover").await;
        assert!(machine.status.get().challenged, "{sort:?}");
        assert_eq!(machine.remembers(), Some(Sort::Warren));
    }
}

#[tokio::test(start_paused = true)]
async fn a_challenge_that_comes_late_is_answered_too() {
    let (machine, mut relay) = Machine::at_some(FakeNode::new(1), Sort::Unclear);
    assert!(!is_challenged(&machine, &relay.heard_of("register").await));
    relay.says(CHALLENGE);
    assert!(is_challenged(&machine, &relay.heard_of("register").await));
    assert_eq!(machine.remembers(), Some(Sort::Warren));
}

#[tokio::test(start_paused = true)]
async fn a_relay_known_as_a_warrens_never_hears_the_signature_that_can_be_used_again() {
    let (machine, mut relay) = Machine::at_some(FakeNode::new(1), Sort::Warren);
    let start = Instant::now();
    let ended = machine.ended.await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10);
    let ConnectionEnd::Broken(why) = ended else { panic!("{ended:?}") };
    assert!(why.contains("sent no challenge"), "{why}");
    assert!(relay.heard_nothing().await);
}

#[tokio::test(start_paused = true)]
async fn a_challenge_after_the_registration_changes_nothing() {
    let (machine, mut relay) = Machine::at_stock(FakeNode::new(1));
    relay.registers(&[]).await;
    relay.says(CHALLENGE);
    assert!(!is_challenged(&machine, &relay.heard_of("register").await));
    assert_eq!(machine.node.bad("a challenge"), 1);
    assert_eq!(machine.remembers(), Some(Sort::Stock));
}
