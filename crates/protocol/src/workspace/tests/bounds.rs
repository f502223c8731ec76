//! The bounds of the fields of requests, to the last byte of them.

use serde_json::{Value, json};

use super::requests;
use crate::workspace::{decode_request, limits::*};

/// A request of this type with a field set.
fn with(kind: &str, field: &str, value: Value) -> String {
    let (_, mut request) = requests().find(|(_, value)| value["type"] == kind).unwrap();
    request[field] = value;
    request.to_string()
}

fn takes(kind: &str, field: &str, value: Value) {
    if let Err(error) = decode_request(&with(kind, field, value)) {
        panic!("{kind}.{field}: {error}");
    }
}

fn refuses(kind: &str, field: &str, value: Value, why: &str) {
    let error = decode_request(&with(kind, field, value)).unwrap_err().to_string();
    assert_eq!(error, format!("`{kind}`: field `{field}`: {why}"));
}

/// As long as a field may be, and one byte longer.
fn reaches(kind: &str, field: &str, max: usize) {
    takes(kind, field, json!("x".repeat(max)));
    let why = format!("must not be longer than {max} bytes");
    refuses(kind, field, json!("x".repeat(max + 1)), &why);
}

#[test]
fn every_text_has_a_length() {
    for kind in ["new_session", "open_terminal", "create_team", "spawn_worker", "adopt_session"] {
        reaches(kind, "working_dir", PATH_MAX);
        reaches(kind, "name", NAME_MAX);
    }
    for field in ["model", "run_as_user", "node_id", "provider"] {
        reaches("new_session", field, NAME_MAX);
    }
    for kind in [
        "list_directory",
        "list_project_files",
        "read_project_file",
        "read_project_file_chunk",
        "write_project_file",
        "create_project_file",
        "create_project_directory",
        "delete_project_entry",
        "upload_project_file",
        "upload_project_file_part",
        "git_diff",
    ] {
        reaches(kind, "path", PATH_MAX);
    }
    for kind in ["move_project_entry", "copy_project_entry"] {
        reaches(kind, "from", PATH_MAX);
        reaches(kind, "to", PATH_MAX);
        reaches(kind, "request_id", REQUEST_ID_MAX);
    }
    reaches("upload_project_file", "request_id", REQUEST_ID_MAX);
    reaches("upload_project_file_part", "request_id", REQUEST_ID_MAX);
    reaches("upload_project_file_part", "upload_id", REQUEST_ID_MAX);
    reaches("terminal_input", "input_id", REQUEST_ID_MAX);
    reaches("terminal_input", "data", INPUT_MAX);
    reaches("send_input", "input", PROMPT_MAX);
    reaches("send_input", "input_id", REQUEST_ID_MAX);
    reaches("handoff", "prompt", PROMPT_MAX);
    reaches("assign", "prompt", PROMPT_MAX);
    reaches("relay_team_message", "payload", PAYLOAD_MAX);
    reaches("report_result", "result", PAYLOAD_MAX);
    reaches("permission_response", "message", REASON_MAX);
    reaches("auth", "token", TOKEN_MAX);
    reaches("open_terminal", "command", PATH_MAX);
    reaches("rename_session", "name", NAME_MAX);
    reaches("rename_node", "name", NAME_MAX);
    reaches("cluster_forget", "node_id", NAME_MAX);
    reaches("cluster_revoke_invite", "invite_id", NAME_MAX);
    reaches("promote_node", "node_id", NAME_MAX);
    reaches("create_project", "name", NAME_MAX);
    reaches("update_project", "run_as_user", NAME_MAX);
}

#[test]
fn every_list_has_a_length() {
    let lists = [
        ("new_session", "tags", json!("t"), TAGS_MAX),
        ("open_terminal", "tags", json!("t"), TAGS_MAX),
        ("new_session", "extra_args", json!("a"), ARGS_MAX),
        ("open_terminal", "args", json!("a"), ARGS_MAX),
        ("create_team", "extra_args", json!("a"), ARGS_MAX),
        ("update_cluster_config", "peers", json!("a:1"), PEERS_MAX),
        ("team_wait", "for_session_ids", json!("550e8400-e29b-41d4-a716-446655440000"), WAITED_MAX),
    ];
    for (kind, field, entry, max) in lists {
        takes(kind, field, json!(vec![entry.clone(); max]));
        let why = format!("must not have more than {max} entries");
        refuses(kind, field, json!(vec![entry; max + 1]), &why);
    }
}

#[test]
fn arguments_and_variables_have_a_size_together() {
    let why = format!("must not be longer than {ARGS_BYTES_MAX} bytes");
    let half = "x".repeat(ARGS_BYTES_MAX / 2);
    takes("open_terminal", "args", json!([half, half]));
    refuses("open_terminal", "args", json!([half, half, "x"]), &why);

    let why = format!("must not be longer than {ENV_BYTES_MAX} bytes");
    takes("create_project", "env", json!({"A": "x".repeat(ENV_BYTES_MAX - 1)}));
    refuses("create_project", "env", json!({"A": "x".repeat(ENV_BYTES_MAX)}), &why);
    refuses("update_project", "env", json!({"A": "x".repeat(ENV_BYTES_MAX)}), &why);

    let env = |count: usize| (0..count).map(|at| (format!("V{at}"), json!(""))).collect::<Value>();
    takes("create_project", "env", env(ENV_MAX));
    let why = format!("must not have more than {ENV_MAX} entries");
    refuses("create_project", "env", env(ENV_MAX + 1), &why);
}

#[test]
fn names_are_not_empty_and_do_nothing_to_a_terminal() {
    refuses("rename_session", "name", json!(""), "must not be empty");
    refuses("rename_session", "name", json!("a\u{1b}[2J"), "must not hold control characters");
    refuses("new_session", "tags", json!(["a\n"]), "must not hold control characters");
    takes("rename_session", "name", json!("Füchse im Bau 🦊"));
}

#[test]
fn arguments_of_a_process_hold_no_nul() {
    let why = "must not hold a NUL character";
    refuses("open_terminal", "command", json!("a\0b"), why);
    refuses("open_terminal", "args", json!(["a\0b"]), why);
    refuses("new_session", "working_dir", json!("/\0"), why);
    refuses("create_project", "env", json!({"A": "\0"}), why);
    let why = "must have names that are not empty and hold no `=`";
    refuses("create_project", "env", json!({"A=B": ""}), why);
    refuses("create_project", "env", json!({"": ""}), why);
}

/// The code that resolves a path decides whether the path leaves its project, and has a reply for that.
#[test]
fn any_path_of_a_project_is_read() {
    for path in ["", "..", "/etc/passwd", "a\0b", "a\nb", "é"] {
        takes("read_project_file", "path", json!(path));
    }
}
