//! The registered nodes, and the messages to each.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::mesh::wire::apple_now;

const FORWARDS: [&str; 7] =
    ["offer", "answer", "iceCandidate", "relayOpen", "relayReady", "relayData", "relayClose"];

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
}

impl RelayState {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn registrations(&self) -> usize {
        self.inner().registrations
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

    fn forward(&self, connection: &Connection, kind: &str, body: &Value) {
        let to = body["toNodeID"].as_str().unwrap_or_default();
        match self.nodes.get(to) {
            Some(node) => say(&node.out, &json!({ kind: body })),
            None => {
                error(connection, "peer_not_found", &format!("Peer {to} is not connected"));
            }
        }
    }
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
