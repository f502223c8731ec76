//! Which role which request needs.

use serde_json::json;

use super::requests;
use crate::workspace::{Role, decode_request};

/// All requests, by the role that they need as the examples have them.
const READ: [&str; 19] = [
    "attach",
    "auth",
    "cluster_status",
    "detach",
    "get_cluster_config",
    "get_history",
    "get_team",
    "get_team_inbox",
    "git_diff",
    "git_status",
    "keepalive",
    "list_project_files",
    "list_projects",
    "list_sessions",
    "list_teams",
    "read_project_file",
    "read_project_file_chunk",
    "unwatch_project_files",
    "watch_project_files",
];
const ADMIN: [&str; 10] = [
    "adopt_session",
    "create_project",
    "delete_project",
    "force_election",
    "list_directory",
    "promote_node",
    "rename_node",
    "trigger_sync",
    "update_cluster_config",
    "update_project",
];

#[test]
fn every_request_needs_a_role() {
    for (line, mut value) in requests() {
        let kind = value["type"].as_str().unwrap().to_owned();
        if value.get("run_as_user").is_some() && !kind.ends_with("project") {
            value["run_as_user"] = json!(null);
        }
        let role = decode_request(&value.to_string()).unwrap().role();
        let wanted = match () {
            () if READ.contains(&kind.as_str()) => Role::Read,
            () if ADMIN.contains(&kind.as_str()) => Role::Admin,
            () => Role::Write,
        };
        assert_eq!(role, wanted, "{line}");
    }
}

#[test]
fn being_another_user_is_for_admins() {
    for text in [
        json!({"type": "new_session", "run_as_user": "alice"}),
        json!({"type": "open_terminal", "command": "sh", "run_as_user": "alice"}),
    ] {
        assert_eq!(decode_request(&text.to_string()).unwrap().role(), Role::Admin);
    }
}

#[test]
fn a_role_may_do_what_those_before_it_may() {
    assert!(Role::Read < Role::Write && Role::Write < Role::Admin);
    assert_eq!(Role::ALL.map(Role::as_str), ["read", "write", "admin"]);
}
