//! The registered nodes, and the messages to each.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::mesh::wire::apple_now;

/// The most messages that are remembered.
const MAX_FORWARDED: usize = 100_000;

/// The most data that is remembered, in bytes.
const MAX_KEPT: usize = 64 * 1024 * 1024;

const FORWARDS: [&str; 7] =
    ["offer", "answer", "iceCandidate", "relayOpen", "relayReady", "relayData", "relayClose"];

/// A message that went from one node to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwarded {
    pub kind: String,
    pub from: String,
    pub to: String,
    pub session: String,
    /// The data that a `relayData` carried; empty once too much is remembered.
    pub data: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    out: mpsc::Sender<Message>,
    /// The last id that was registered on it: of more than one, the others stay for ever.
    node: Option<String>,
}

#[derive(Debug)]
struct Node {
    connection: u64,
    out: mpsc::Sender<Message>,
    registration: Value,
    seen: f64,
}

#[derive(Debug, Default)]
pub(super) struct RelayState(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    nodes: BTreeMap<String, Node>,
    seats: u64,
    registrations: usize,
    forwarded: Vec<Forwarded>,
    kept: usize,
}

impl RelayState {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn say_to(&self, node: &str, message: &Value) {
        let inner = self.inner();
        let node = inner.nodes.get(node).unwrap_or_else(|| panic!("{node} is not registered"));
        say(&node.out, message);
    }

    pub(super) fn forwarded(&self) -> Vec<Forwarded> {
        self.inner().forwarded.clone()
    }

    pub(super) fn knows(&self, node: &str) -> Option<Value> {
        self.inner().nodes.get(node).map(record)
    }

    pub(super) fn registrations(&self) -> usize {
        self.inner().registrations
    }

    pub(super) fn registration(&self, node: &str) -> Option<Value> {
        self.inner().nodes.get(node).map(|node| node.registration.clone())
    }

    pub(super) fn connection(&self, out: mpsc::Sender<Message>) -> Connection {
        let mut inner = self.inner();
        inner.seats += 1;
        Connection { number: inner.seats, out, node: None }
    }

    pub(super) fn take(&self, connection: &mut Connection, text: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(text) else {
            return error(connection, "invalid_json", "Could not decode relay message");
        };
        let first = message.as_object().and_then(|object| object.iter().next());
        let Some((kind, body)) = first else {
            return error(connection, "invalid_message", "Empty relay message");
        };
        let body = body.get("_0").unwrap_or(body);
        let mut inner = self.inner();
        match kind.as_str() {
            "register" => inner.register(connection, body),
            "discover" => inner.discover(connection, body),
            kind if FORWARDS.contains(&kind) => inner.forward(connection, kind, body),
            kind => {
                error(
                    connection,
                    "unsupported_message",
                    &format!("Unsupported relay message: {kind}"),
                );
            }
        }
    }

    pub(super) fn leave(&self, connection: &Connection) {
        let mut inner = self.inner();
        let Some(id) = &connection.node else { return };
        if inner.nodes.get(id).is_some_and(|node| node.connection == connection.number) {
            let name = inner.nodes[id].registration["displayName"].clone();
            inner.nodes.remove(id);
            inner.tell_all(connection, &json!({"peerLeft": {"nodeID": id, "displayName": name}}));
        }
    }
}

impl Inner {
    fn register(&mut self, connection: &mut Connection, body: &Value) {
        let Some(id) = body["nodeID"].as_str() else {
            return error(connection, "invalid_register", "Missing nodeID in register payload");
        };
        self.registrations += 1;
        let out = connection.out.clone();
        let seen = apple_now();
        let node = Node { connection: connection.number, out, registration: body.clone(), seen };
        let before = self.nodes.insert(id.to_owned(), node);
        if let Some(before) = before.filter(|before| before.connection != connection.number) {
            replaced(&before.out);
        }
        connection.node = Some(id.to_owned());
        let ack = json!({"nodeID": id, "registeredAt": seen, "ttlSeconds": 300});
        say(&connection.out, &json!({"registerAck": ack}));
        let joined = json!({"nodeID": id, "displayName": body["displayName"]});
        self.tell_all(connection, &json!({"peerJoined": joined}));
    }

    fn tell_all(&self, but: &Connection, message: &Value) {
        for node in self.nodes.values().filter(|node| node.connection != but.number) {
            say(&node.out, message);
        }
    }

    fn discover(&self, connection: &Connection, body: &Value) {
        let others = self.nodes.iter().filter(|(id, _)| body["requestingNodeID"] != **id);
        let peers: Vec<Value> = others.map(|(_, node)| record(node)).collect();
        say(&connection.out, &json!({"discoverResponse": {"peers": peers}}));
    }

    fn forward(&mut self, connection: &Connection, kind: &str, body: &Value) {
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let to = text("toNodeID");
        if !self.nodes.contains_key(&to) {
            return error(connection, "peer_not_found", &format!("Peer {to} is not connected"));
        }
        self.remember(Forwarded {
            kind: kind.to_owned(),
            from: text("fromNodeID"),
            to,
            session: text("sessionID"),
            data: bytes(body),
        });
        if let Some(node) = body["toNodeID"].as_str().and_then(|to| self.nodes.get(to)) {
            say(&node.out, &json!({ kind: body }));
        }
    }

    fn remember(&mut self, mut forwarded: Forwarded) {
        self.kept += forwarded.data.len();
        if self.kept > MAX_KEPT {
            forwarded.data = Vec::new();
        }
        if self.forwarded.len() < MAX_FORWARDED {
            self.forwarded.push(forwarded);
        }
    }
}

/// What a `relayData` carries.
fn bytes(body: &Value) -> Vec<u8> {
    body["data"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok()).unwrap_or_default()
}

/// A node's record in the answer to a discovery.
fn record(node: &Node) -> Value {
    let registration = &node.registration;
    json!({
        "nodeID": registration["nodeID"], "publicKey": registration["publicKey"],
        "wgPublicKey": registration["wgPublicKey"], "displayName": registration["displayName"],
        "capabilities": registration["capabilities"], "lastSeen": node.seen,
        "natType": "unknown", "endpoints": [],
    })
}

fn say(out: &mpsc::Sender<Message>, message: &Value) {
    // What a slow receiver's buffer does not hold is lost, as at stock relays.
    let _lost = out.try_send(Message::text(message.to_string()));
}

fn replaced(out: &mpsc::Sender<Message>) {
    let reason = "Replaced by newer session".into();
    let frame = CloseFrame { code: CloseCode::Restart, reason };
    let _lost = out.try_send(Message::Close(Some(frame)));
}

fn error(connection: &Connection, code: &str, message: &str) {
    say(&connection.out, &json!({"error": {"code": code, "message": message}}));
}
