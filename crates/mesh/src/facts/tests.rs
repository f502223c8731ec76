//! The facts that this machine reports, with a scheduler whose providers the test has.

use std::sync::{Arc, atomic::Ordering};

use base::NodeId;

use super::*;
use crate::{
    share::Hours,
    testing::{Server, settings},
};

fn facts(share: Share, server: &Server) -> Facts {
    let name = "laptop".to_owned();
    let settings = Settings { name, version: "1.2.3", share, ..settings() };
    Facts::new(&settings, NodeId::new([7; 32]), server.scheduler.clone(), Arc::default())
}

fn shared() -> Share {
    Share { with: Sharing::Peers, ..Share::default() }
}

fn condition(thermal: Thermal, on_ac_power: bool) -> Condition {
    Condition { thermal, on_ac_power, battery_percent: None, load: 0.0 }
}

#[tokio::test]
async fn it_announces_the_models_of_its_own_providers() {
    let mut server = Server::new();
    let facts = facts(shared(), &server);
    assert!(facts.heartbeat().loaded_models.is_empty());
    let _one = server.lend(&["b", "a", "*"], 2);
    let _two = server.lend(&["a", "c"], 3);
    let hello = facts.hello(false);
    assert_eq!(hello.loaded_models, ["a", "b", "c"]);
    assert_eq!(hello.device_info.loaded_models, hello.loaded_models);
    assert_eq!(
        (hello.device_info.name.as_str(), &hello.device_info.id),
        ("laptop", facts.device_id())
    );
    let warren = hello.warren.unwrap();
    assert_eq!((warren.node_id, warren.max_concurrent_requests), (NodeId::new([7; 32]), Some(5)));
    let capabilities = facts.capabilities();
    assert!(capabilities.is_available);
    assert_eq!(
        (capabilities.max_concurrent_requests, capabilities.warren.unwrap().mesh),
        (Some(5), 2)
    );
}

#[tokio::test]
async fn unshared_models_are_not_announced() {
    let mut server = Server::new();
    let _lent = server.lend(&["a", "b"], 4);
    let nothing = facts(Share::default(), &server);
    assert!(nothing.heartbeat().loaded_models.is_empty() && !nothing.capabilities().is_available);
    let some = facts(Share { models: vec!["B".to_owned()], jobs: Some(1), ..shared() }, &server);
    assert_eq!(some.heartbeat().loaded_models, ["b"]);
    assert_eq!(some.heartbeat().max_concurrent_requests, Some(1));
}

#[tokio::test]
async fn heartbeats_report_heat_and_load() {
    let mut server = Server::new();
    let facts = facts(shared(), &server);
    let mut lent = server.lend(&["m"], 1);
    assert_eq!((facts.heartbeat().is_generating, facts.heartbeat().throttle_level), (false, 100));
    let _running = server.ask(true);
    lent.assigned().await;
    let _waiting = server.ask(true);
    facts.lock().condition = condition(Thermal::Serious, true);
    let beat = facts.heartbeat();
    assert_eq!((beat.is_generating, beat.queue_depth, beat.throttle_level), (true, 1, 25));
    assert_eq!((beat.thermal_level, beat.ewma_tokens_per_second), (Thermal::Serious, None));
}

#[tokio::test]
async fn every_rule_that_pauses_it_shows_as_throttle_0() {
    let mut server = Server::new();
    let _lent = server.lend(&["m"], 2);
    let hot = facts(shared(), &server);
    hot.lock().condition = condition(Thermal::Critical, true);
    let on_battery = facts(Share { pause_on_battery: true, ..shared() }, &server);
    on_battery.lock().condition = condition(Thermal::Nominal, false);
    let minute = Moment::now().minute;
    // Neither this minute nor those in which the test may still run.
    let hours = vec![Hours { from: (minute + 60) % 1440, to: (minute + 61) % 1440 }];
    let closed = facts(Share { hours, ..shared() }, &server);
    let busy = facts(Share { max_load: Some(0.4), ..shared() }, &server);
    assert_eq!(busy.heartbeat().throttle_level, 100);
    let _own = server.ask(true);
    for facts in [&hot, &on_battery, &closed, &busy] {
        assert_eq!(facts.heartbeat().throttle_level, 0);
        assert!(!facts.capabilities().is_available);
    }
    assert_eq!(busy.load().own_load, 0.5);
    busy.lent.store(1, Ordering::Relaxed);
    assert_eq!(busy.heartbeat().throttle_level, 100, "what peers have here is not its own");
}

#[tokio::test]
async fn addresses_are_sent_over_sealed_links_only() {
    let server = Server::new();
    let facts = facts(shared(), &server);
    facts.listens(([127, 0, 0, 1], 4_711).into());
    facts.read_condition().await;
    assert_eq!(facts.hello(true).warren.unwrap().addresses, [([127, 0, 0, 1], 4_711).into()]);
    assert!(facts.hello(false).warren.unwrap().addresses.is_empty());
}

#[tokio::test]
async fn a_listener_on_all_addresses_announces_those_that_others_can_reach() {
    let server = Server::new();
    let facts = facts(shared(), &server);
    facts.listens(([0, 0, 0, 0], 4_711).into());
    facts.read_condition().await;
    let addresses = facts.hello(true).warren.unwrap().addresses;
    assert!(
        addresses.iter().all(|at| at.port() == 4_711 && !at.ip().is_unspecified()),
        "{addresses:?}"
    );
}
