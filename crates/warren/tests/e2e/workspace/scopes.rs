//! Keys of the workspace's scopes: what each may do, and that none outlives its revocation.

use serde_json::json;
use testkit::workspace::WorkspaceClient;

use super::kit::{WorkspaceHost, about};
use crate::cli::make_key;

/// Somebody with a key of this scope, and the key's id.
async fn with_scope(place: &WorkspaceHost, scope: &str) -> (WorkspaceClient, String) {
    let (id, key) = make_key(&place.daemon, json!({"scopes": [scope]})).await;
    (WorkspaceClient::connect(place.daemon.address(), &key).await, id)
}

#[tokio::test]
async fn a_reader_sees_what_others_do_and_changes_nothing() {
    let place = WorkspaceHost::start().await;
    let (mut reader, _) = with_scope(&place, "workspace:read").await;
    let mut writer = place.client().await;
    let id = place.runs(&mut writer, "echo ready; read x; echo got $x; read y").await;
    let mut viewer = super::kit::Viewer::of(reader, &id).await;
    viewer.shows("ready").await;
    viewer.types("evil\n").await;
    viewer.told("error").await;
    writer.say(json!({"type": "send_input", "session_id": id, "input": "good"})).await;
    viewer.shows("got good").await;
    reader = viewer.client;
    let words = reader.refused(about("kill_session", &id)).await;
    assert!(words.contains("workspace:write"), "{words}");
}

#[tokio::test]
async fn a_key_of_another_scope_is_not_let_in() {
    let place = WorkspaceHost::start().await;
    for scope in ["inference", "admin", "metrics"] {
        let (_, key) = make_key(&place.daemon, json!({"scopes": [scope]})).await;
        let mut client = WorkspaceClient::open(place.daemon.address()).await;
        let result = client.auth(&key).await;
        assert_eq!(result["success"], false, "{scope}: {result}");
        assert!(result["message"].as_str().unwrap().contains("workspace:"), "{result}");
    }
}
