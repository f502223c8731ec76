//! Messages that nobody should send: each gets a refusal, and the connection goes on.

use testkit::workspace::{ServerMessage, client_messages, sample};

use super::kit::WorkspaceHost;

/// The answer to what is wrong: something that says so, in one family or another.
fn is_refusal(heard: &ServerMessage) -> bool {
    matches!(
        heard.kind(),
        "error"
            | "session_unknown"
            | "project_file_error"
            | "project_file_chunk_error"
            | "project_fs_action_error"
            | "git_error"
    )
}

#[tokio::test]
async fn every_message_about_what_is_not_there_is_refused() {
    let (_place, mut client) = WorkspaceHost::with_client().await;
    let no_ids = [
        "auth",
        "keepalive",
        "detach",
        "list_sessions",
        "list_projects",
        "list_teams",
        "cluster_status",
        "get_cluster_config",
        "force_election",
        "trigger_sync",
        "update_cluster_config",
        "rename_node",
        "promote_node",
        "cluster_invite",
        "cluster_invites",
        "cluster_leave",
        "unwatch_project_files",
    ];
    for name in client_messages().iter().filter(|name| !no_ids.contains(*name)) {
        client.say(sample(name)).await;
        let heard = client.next().await.unwrap_or_else(|| panic!("{name} ended it"));
        assert!(is_refusal(&heard), "{name} was answered with {heard:?}");
    }
}
