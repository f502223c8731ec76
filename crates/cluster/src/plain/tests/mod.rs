//! Members and plain peers over real sockets.

mod forwarded;
mod greeting;
mod limits;
mod peer;
mod served;
mod state;
mod workspace;

use std::time::Duration;

use base::Secret;
use peer::Peer;
use serde_json::{Value, json};

use crate::{
    Settings,
    testing::{Machine, until},
};

const TOKEN: &str = "secret";
const S: &str = "550e8400-e29b-41d4-a716-446655440001";
const P: &str = "550e8400-e29b-41d4-a716-446655440002";
const T: &str = "550e8400-e29b-41d4-a716-446655440003";

fn settings(peers: &[String]) -> Settings {
    Settings {
        token: Some(Secret::from(TOKEN)),
        peers: peers.to_vec(),
        name: "warren".to_owned(),
        heartbeat: Duration::from_millis(100),
        ..Settings::default()
    }
}

async fn warren() -> Machine {
    Machine::start(1, [1; 32], settings(&[])).await
}

/// A plain peer that has greeted, and has taken the snapshot.
async fn joined(machine: &Machine) -> Peer {
    let mut peer = Peer::greeted(machine, "plain").await;
    peer.until("state_snapshot").await;
    peer
}

fn session(id: &str, owner: &str, name: &str, generation: u64) -> Value {
    json!({"info": {"id": id, "name": name, "mode": "pty", "status": "running",
        "working_dir": "/w", "created_at": "2026-01-01T00:00:00Z",
        "last_active": "2026-01-01T00:00:00Z", "node_id": owner,
        "kind": {"type": "shell", "command": "bash"}},
        "generation": generation, "output_history": []})
}

fn update(session: &Value) -> Value {
    json!({"type": "session_update", "term": 0, "session": session})
}
