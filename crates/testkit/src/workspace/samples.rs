//! One message of each kind, as a client might say it.

use serde_json::{Value, json};

/// An id that nothing has.
pub const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

/// A message of this `type`, well formed and about nothing that there is.
///
/// # Panics
/// When there is no such message.
pub fn sample(kind: &str) -> Value {
    let of_session = || json!({"session_id": NOBODY});
    let of_project = || json!({"project_id": NOBODY});
    let of_team = || json!({"team_id": NOBODY});
    let entry = || json!({"project_id": NOBODY, "path": "a", "request_id": "r"});
    let transfer = || json!({"project_id": NOBODY, "from": "a", "to": "b", "request_id": "r"});
    let mut message = match kind {
        "auth" => json!({"token": "not it"}),
        "keepalive" | "detach" | "list_sessions" | "list_projects" | "list_teams"
        | "cluster_status" | "cluster_invite" | "cluster_invites" | "cluster_leave"
        | "get_cluster_config" | "force_election" | "trigger_sync" => json!({}),
        "new_session" => json!({"working_dir": "/nowhere/at/all"}),
        "attach" | "kill_session" | "interrupt" | "take_control" | "get_history" | "get_turns" => {
            of_session()
        }
        "send_input" => json!({"session_id": NOBODY, "input": "hi"}),
        "adopt_session" => json!({"pid": 0x7fff_fff0}),
        "move_session" => json!({"session_id": NOBODY, "node_id": "nowhere"}),
        "rename_session" => json!({"session_id": NOBODY, "name": "n"}),
        "permission_response" => json!({"request_id": NOBODY, "allow": true}),
        "open_terminal" => json!({"working_dir": "/nowhere/at/all", "command": "sh"}),
        "terminal_input" => json!({"session_id": NOBODY, "data": "hi", "encoding": "text"}),
        "resize" => json!({"session_id": NOBODY, "cols": 80, "rows": 24, "visible": true}),
        "list_directory" => json!({"path": "/nowhere/at/all"}),
        "create_project" => json!({"name": "n", "working_dir": "/nowhere/at/all"}),
        "update_project" => json!({"project_id": NOBODY, "name": "n"}),
        "delete_project" | "watch_project_files" | "unwatch_project_files" | "git_status" => {
            of_project()
        }
        "list_project_files" | "read_project_file" => json!({"project_id": NOBODY, "path": "a"}),
        "read_project_file_chunk" => {
            json!({"request_id": "r", "project_id": NOBODY, "path": "a", "offset": 0, "len": 9})
        }
        "write_project_file" => {
            json!({"project_id": NOBODY, "path": "a", "content": "c", "base_sha256": null})
        }
        "create_project_file" | "create_project_directory" | "delete_project_entry" => entry(),
        "move_project_entry" | "copy_project_entry" => transfer(),
        "upload_project_file" => {
            json!({"project_id": NOBODY, "path": "a", "data": "YQ==", "request_id": "r"})
        }
        "upload_project_file_part" => json!({
            "project_id": NOBODY, "path": "a", "data": "YQ==", "request_id": "r", "upload_id": "u", "offset": 0,
        }),
        "git_diff" => json!({"project_id": NOBODY, "path": "a", "staged": false}),
        "create_team" => json!({"name": "n", "working_dir": "/nowhere/at/all"}),
        "spawn_worker" | "get_team" | "delete_team" | "team_wait" => of_team(),
        "relay_team_message" => {
            json!({"team_id": NOBODY, "from_session_id": NOBODY, "payload": "p"})
        }
        "handoff" => json!({"team_id": NOBODY, "prompt": "p", "timeout_ms": 1}),
        "assign" => json!({"team_id": NOBODY, "prompt": "p"}),
        "get_team_inbox" => json!({"team_id": NOBODY, "session_id": NOBODY}),
        "report_result" => json!({
            "team_id": NOBODY, "worker_session_id": NOBODY, "success": true, "result": "r",
        }),
        "update_cluster_config" => json!({"heartbeat_interval_ms": 1000}),
        "rename_node" => json!({"node_id": NOBODY, "name": "n"}),
        "cluster_join" => json!({"code": "x"}),
        "cluster_revoke_invite" => json!({"invite_id": "x"}),
        "cluster_forget" | "promote_node" => json!({"node_id": NOBODY}),
        _ => panic!("there is no sample of {kind}"),
    };
    message["type"] = kind.into();
    message
}
