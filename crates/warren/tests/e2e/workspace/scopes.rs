//! Keys of the workspace's scopes: what each may do, and that none outlives its revocation.

use serde_json::json;
use testkit::workspace::{ServerMessage, WorkspaceClient, client_messages, sample};

use super::kit::{WorkspaceHost, about};
use crate::cli::{make_key, revoke};

/// Somebody with a key of this scope, and the key's id.
async fn with_scope(place: &WorkspaceHost, scope: &str) -> (WorkspaceClient, String) {
    let (id, key) = make_key(&place.daemon, json!({"scopes": [scope]})).await;
    (WorkspaceClient::connect(place.daemon.address(), &key).await, id)
}

/// Whether it says that a scope is lacking, in one family's words or another's.
fn lacks(heard: &ServerMessage) -> bool {
    let ServerMessage::Message(message) = heard else { return false };
    message["message"].as_str().is_some_and(|words| words.contains("needs the scope workspace:"))
}

fn may_send(scope: &str, name: &str) -> bool {
    match scope {
        "workspace:read" => !WRITES.contains(&name) && !REACHES.contains(&name),
        "workspace:write" => !REACHES.contains(&name),
        _ => true,
    }
}

/// Messages that those may not send who may only look.
const WRITES: [&str; 32] = [
    "new_session",
    "open_terminal",
    "send_input",
    "terminal_input",
    "interrupt",
    "resize",
    "take_control",
    "kill_session",
    "rename_session",
    "move_session",
    "permission_response",
    "write_project_file",
    "create_project_file",
    "create_project_directory",
    "move_project_entry",
    "copy_project_entry",
    "delete_project_entry",
    "upload_project_file",
    "upload_project_file_part",
    "create_team",
    "spawn_worker",
    "delete_team",
    "relay_team_message",
    "handoff",
    "assign",
    "team_wait",
    "report_result",
    "list_directory",
    "adopt_session",
    "create_project",
    "update_project",
    "delete_project",
];

/// Messages that are for administrators.
const REACHES: [&str; 16] = [
    "list_directory",
    "adopt_session",
    "create_project",
    "update_project",
    "delete_project",
    "update_cluster_config",
    "rename_node",
    "cluster_invite",
    "cluster_invites",
    "cluster_revoke_invite",
    "cluster_join",
    "cluster_leave",
    "cluster_forget",
    "force_election",
    "promote_node",
    "trigger_sync",
];

#[tokio::test]
async fn each_scope_may_what_the_lower_ones_may_and_no_more() {
    let place = WorkspaceHost::start().await;
    for scope in ["workspace:read", "workspace:write", "workspace:admin"] {
        let (mut may_not, _) = with_scope(&place, scope).await;
        let (mut may, _) = with_scope(&place, scope).await;
        for name in client_messages().iter().filter(|name| **name != "auth") {
            if may_send(scope, name) {
                may.say(sample(name)).await;
                let heard = may.so_far().await;
                assert!(!heard.iter().any(lacks), "{scope}: {name}: {heard:?}");
                continue;
            }
            may_not.say(sample(name)).await;
            let heard = may_not.next().await.expect("the connection stays");
            assert!(lacks(&heard), "{scope}: {name}: {heard:?}");
        }
    }
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
async fn a_key_that_is_revoked_ends_its_connections() {
    let place = WorkspaceHost::start().await;
    let (mut client, id) = with_scope(&place, "workspace:write").await;
    let (mut other, _) = with_scope(&place, "workspace:write").await;
    assert_eq!(revoke(&place.daemon, &id).await.status / 100, 2);
    client.ends().await;
    assert!(other.so_far().await.is_empty());
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
