//! Peers that do harm on the LAN.

use serde_json::Value;
use testkit::mesh::LanPeer;

use super::kit::{Machine, always, listening, saying, whole};

#[tokio::test]
async fn a_flood_of_connections_is_bounded_and_others_are_served() {
    let machine = Machine::lending(listening(), 1).await;
    let address = machine.lan_address().await;
    let mut strangers = Vec::new();
    for _ in 0..40 {
        strangers.push(LanPeer::dial(address).await);
    }
    // More than one address may have at once are told so, or closed.
    let last = strangers.last_mut().expect("a stranger");
    let said = Value::from(last.closed().await).to_string();
    assert!(said.contains("linkClosed"), "{said}");
    machine.is_healthy().await;
    always(&machine.mock, "yes");
    assert_eq!(whole(&machine.ask(&saying("hi", false)).await), "yes");
}
