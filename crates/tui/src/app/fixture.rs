//! Events that tests give the interface.

use client::{ClientError, admin::requests::RequestJson};
use protocol::{
    room::{ParticipantInfo, RoomSummary, event::LlmDone},
    workspace::{ClusterStatus, SessionId, SessionInfo},
};
use serde_json::json;

pub(crate) fn request(n: u64) -> RequestJson {
    serde_json::from_value(json!({
        "n": n, "id": format!("r-{n:032x}"), "at": "2026-11-20T16:00:07Z", "key": "k-01",
        "model": "llama3.2:3b", "served_model": null, "endpoint": "/v1/chat/completions",
        "provider": "gpu-box", "outcome": "answered", "status": 200, "prompt_tokens": 12,
        "completion_tokens": 40, "estimated": false, "queue_ms": 3, "first_byte_ms": 80,
        "total_ms": 2_080, "streaming": true, "requeues": 0,
    }))
    .unwrap()
}

pub(crate) fn room() -> RoomSummary {
    serde_json::from_value(json!({
        "id": "room-id-1", "code": "K7QWTZ", "spokenCode": "swift-eagle-42", "name": "Friends",
        "hostId": "h", "createdAt": 1_795_170_970_726_u64, "passwordProtected": false,
        "participantCount": 2,
    }))
    .unwrap()
}

pub(crate) fn participant(id: &str) -> ParticipantInfo {
    let nickname = format!("{}{}", id[..1].to_uppercase(), &id[1..]);
    serde_json::from_value(json!({
        "id": id, "nickname": nickname, "model": "llama3.2:3b",
        "endpoint": "http://127.0.0.1:11434", "config": {"hasInstructions": false},
        "specs": {"gpu": "RTX 4090", "vram": 24, "ram": 64, "cpu": "Ryzen 9"},
        "connection": {"kind": "tunnel", "connected": true, "lastTunnelSeenAt": null},
        "status": "online", "joinedAt": 1_u64, "lastSeen": 2_u64, "updatedAt": 2_u64,
        "maxConcurrent": 2,
    }))
    .unwrap()
}

pub(crate) fn done(participant: &str) -> LlmDone {
    serde_json::from_value(json!({
        "requestId": "r-1", "participantId": participant, "model": "llama3.2:3b",
        "protocol": "chatCompletions",
        "metrics": {"ttftMs": 80, "durationMs": 1_200, "outputTokens": 42, "tokensPerSecond": 35.0},
    }))
    .unwrap()
}

/// Three machines, of which one is away, and a notice.
pub(crate) fn cluster() -> ClusterStatus {
    let peer = |id: &str, name: &str, connected| {
        json!({
            "node_id": id, "name": name, "address": format!("192.168.1.{}:9179", name.len()),
            "connected": connected,
        })
    };
    serde_json::from_value(json!({
        "node_id": "node-one", "role": "leader", "term": 0, "name": "one",
        "address": "192.168.1.21:9179", "notices": ["the clock of two is an hour ahead"],
        "peers": [peer("node-two", "two", true), peer("node-three", "three", false)],
    }))
    .unwrap()
}

/// A terminal on the machine `one`.
pub(crate) fn session(number: u128) -> SessionInfo {
    serde_json::from_value(json!({
        "id": SessionId::from_random(number << 96), "name": format!("build-{number}"), "mode": "pty",
        "status": "running", "working_dir": "/home/ann/site", "created_at": "2026-11-20T09:30:00Z",
        "last_active": "2026-11-20T10:21:40Z", "attached_clients": 1, "node_id": "node-one",
        "kind": {"type": "shell", "command": "top", "args": ["-d", "9"]}, "provider": "claude",
    }))
    .unwrap()
}

pub(crate) fn refused(status: u16) -> ClientError {
    ClientError::Refused { status, words: "the password is not right".to_owned() }
}

pub(crate) fn unreachable() -> ClientError {
    let (url, reason) = ("http://127.0.0.1:9178".to_owned(), "Connection refused".to_owned());
    ClientError::Unreachable { url, reason }
}
