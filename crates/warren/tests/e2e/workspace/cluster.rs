//! The cluster, of which there is only this machine.

use serde_json::{Value, json};
use testkit::workspace::WorkspaceClient;

use super::kit::WorkspaceHost;

async fn acknowledged(client: &mut WorkspaceClient, message: Value, ok: bool) {
    let action = message["type"].clone();
    let ack = client.ask(message, "cluster_action_ack").await;
    assert_eq!((&ack["action"], &ack["ok"]), (&action, &json!(ok)), "{ack}");
    assert!(!ack["message"].as_str().unwrap().is_empty(), "{ack}");
}

/// This server's own id.
async fn node_id(client: &mut WorkspaceClient) -> String {
    let status = client.ask(json!({"type": "cluster_status"}), "cluster_status").await;
    status["cluster"]["node_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn cluster_status_shows_this_machine_alone_under_an_id_that_stays() {
    let mut place = WorkspaceHost::start().await;
    let mut client = place.client().await;
    let status = client.ask(json!({"type": "cluster_status"}), "cluster_status").await;
    let cluster = &status["cluster"];
    assert_eq!((&cluster["role"], &cluster["term"]), (&json!("leader"), &json!(0)), "{cluster}");
    assert_eq!((&cluster["peers"], &cluster["leader_id"]), (&json!([]), &cluster["node_id"]));
    assert_eq!(cluster["leader_address"], place.daemon.address().to_string());
    let id = node_id(&mut client).await;
    assert_eq!(id.len(), 36, "{id}");
    place.daemon.stop_and_restart().await;
    assert_eq!(node_id(&mut place.client().await).await, id);
}

#[tokio::test]
async fn get_cluster_config_tells_what_there_is() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let config = client.ask(json!({"type": "get_cluster_config"}), "cluster_config").await;
    assert_eq!(config["node_id"], node_id(&mut client).await);
    assert_eq!((&config["peers"], &config["min_quorum"]), (&json!([]), &Value::Null), "{config}");
    let timeouts = (&config["election_timeout_min_ms"], &config["election_timeout_max_ms"]);
    assert_eq!(timeouts, (&json!(3000), &json!(5000)), "{config}");
    assert!(
        config["peer_port"].is_number() && config["advertise_addresses"].is_array(),
        "{config}"
    );
}

#[tokio::test]
async fn force_election_does_nothing_and_says_so() {
    let place = WorkspaceHost::start().await;
    acknowledged(&mut place.client().await, json!({"type": "force_election"}), true).await;
}

#[tokio::test]
async fn promote_node_does_nothing_and_says_so() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let id = node_id(&mut client).await;
    acknowledged(&mut client, json!({"type": "promote_node", "node_id": id}), true).await;
}

#[tokio::test]
async fn trigger_sync_does_nothing_and_says_so() {
    let place = WorkspaceHost::start().await;
    acknowledged(&mut place.client().await, json!({"type": "trigger_sync"}), true).await;
}

#[tokio::test]
async fn rename_node_is_acknowledged() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let id = node_id(&mut client).await;
    let rename = json!({"type": "rename_node", "node_id": id, "name": "production-1"});
    let ack = client.ask(rename, "cluster_action_ack").await;
    assert_eq!(ack["action"], "rename_node", "{ack}");
    assert!(ack["ok"].is_boolean() && ack["message"].is_string(), "{ack}");
}

#[tokio::test]
async fn update_cluster_config_is_acknowledged() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let update = json!({
        "type": "update_cluster_config", "peers": ["10.0.0.2:9179"], "heartbeat_interval_ms": 1000,
    });
    let ack = client.ask(update, "cluster_action_ack").await;
    assert_eq!(ack["action"], "update_cluster_config", "{ack}");
    assert!(ack["ok"].is_boolean() && ack["message"].is_string(), "{ack}");
}
