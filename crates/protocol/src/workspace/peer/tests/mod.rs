//! Messages between members: as the specification has them, in other spellings, and broken.

mod any;
mod bounds;
mod examples;
mod refused;
mod spellings;

use serde_json::{Value, json};

use super::{FromPeer, PeerMessage, SessionObject, decode_peer};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const OTHER: &str = "660f9500-f30c-42e5-b827-557766551111";

/// A session as the specification describes it.
fn info() -> Value {
    json!({
        "id": ID, "name": "my-session", "mode": "sdk", "status": "idle",
        "working_dir": "/home/user/project", "model": "opus",
        "created_at": "2025-01-15T10:30:00Z", "last_active": "2025-01-15T10:35:00Z",
        "attached_clients": 1, "adopted_pid": null, "project_id": null, "node_id": null,
        "kind": {"type": "claude"}, "provider": "claude", "hidden": false, "team_id": null,
        "is_team_leader": false
    })
}

fn project() -> Value {
    json!({
        "id": ID, "name": "warren", "working_dir": "/srv/warren", "run_as_user": null,
        "env": {"A": "b"}, "node_id": "n1", "created_at": "2025-01-15T10:30:00Z",
        "updated_at": "2025-01-15T10:35:00.000000001Z"
    })
}

fn team() -> Value {
    json!({
        "id": ID, "name": "research-team", "leader_session_id": OTHER,
        "worker_session_ids": [ID], "status": "active", "created_at": "2025-01-15T10:30:00Z",
        "last_active": "2025-01-15T10:35:00Z", "project_id": null
    })
}

fn read(message: &Value) -> PeerMessage {
    match decode_peer(&message.to_string()) {
        Ok(FromPeer::Message(read)) => read,
        other => panic!("{message}: {other:?}"),
    }
}

/// The session of an update.
fn session(session: &Value) -> SessionObject {
    match read(&json!({"type": "session_update", "session": session})) {
        PeerMessage::SessionUpdate(update) => update.session,
        other => panic!("{other:?}"),
    }
}

fn error(message: &Value) -> String {
    decode_peer(&message.to_string()).unwrap_err().to_string()
}
