//! A consumer behind a relay, in the hands of a test, as the stock gateway is.
//!
//! Each request has a relay session of its own: relayOpen, relayReady, one request, chunks, the end,
//! relayClose. What comes is told apart by session alone. It never says hello, sends no heartbeat,
//! and drops without a word what it cannot read: of an error with a code that it does not know it
//! hears nothing.

mod session;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;

use self::session::GatewaySession;
use super::{
    facts,
    key::MeshKey,
    socket::{RelaySocket, Sink, Stream, carried, forwarded, next, registration},
    strict,
    wire::uuid,
};
use crate::{
    sockets::{self, Task},
    wait::within,
};

/// How long a node has to be ready.
const READY: Duration = Duration::from_secs(4);

/// Messages of a session that wait for the test.
const MAX_WAITING: usize = 10_000;

/// Answers to `discover` that wait for the test.
const MAX_FOUND: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub struct GatewayAnswer {
    pub chunks: Vec<Value>,
    pub complete: Value,
}

impl GatewayAnswer {
    pub fn text(&self) -> String {
        let texts = self.chunks.iter();
        texts.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum GatewayFailure {
    /// The relay does not know the node, in the very words that are looked for.
    NotConnected,
    /// No relayReady in time: the node would be put aside.
    NotReady,
    NoFirstChunk,
    /// The session or the node went away after this many chunks.
    Lost(usize),
    /// The node said so, after this many chunks.
    Error {
        error: Value,
        chunks: usize,
    },
}

#[derive(Debug)]
enum Event {
    Ready,
    Said(String, Value),
    Gone,
    Closed,
}

/// A gateway that is registered. Dropping it ends its connection without a word.
#[derive(Debug)]
pub struct FakeGateway {
    id: String,
    out: AsyncMutex<Sink>,
    shared: Arc<Shared>,
    found: AsyncMutex<mpsc::Receiver<Value>>,
    _reading: Task,
}

#[derive(Debug)]
struct Shared {
    /// By session: the node, and the waiting test.
    sessions: Mutex<HashMap<String, (String, mpsc::Sender<Event>)>>,
    found: mpsc::Sender<Value>,
}

impl FakeGateway {
    /// The gateway of a seed of these bytes, at this relay.
    pub async fn start(relay: SocketAddr, seed: u8) -> Self {
        let key = MeshKey::new([seed; 32]);
        let id = key.id();
        let mut socket = RelaySocket::open(relay, &id).await;
        // Stock gateways ask before they register, and only once in 10 s.
        socket.say(&json!({"discover": {"requestingNodeID": id}})).await;
        socket.say(&registration(&key, "gateway", &facts::gateway_capabilities())).await;
        socket.expect_all(&["discoverResponse", "registerAck"]).await;
        let (sink, stream) = socket.split();
        let (told, found) = mpsc::channel(MAX_FOUND);
        let shared = Arc::new(Shared { sessions: Mutex::default(), found: told });
        let reading = sockets::spawn(read_all(stream, Arc::clone(&shared)));
        let (out, found) = (AsyncMutex::new(sink), AsyncMutex::new(found));
        Self { id, out, shared, found, _reading: reading }
    }

    async fn discover(&self) -> Vec<Value> {
        let mut found = self.found.lock().await;
        self.say(&json!({"discover": {"requestingNodeID": self.id}})).await;
        let response = within("an answer to discover", found.recv()).await;
        let response = response.expect("the gateway reads");
        response["peers"].as_array().expect("a list of peers").clone()
    }

    /// Waits until the relay lists this node with this model loaded.
    pub async fn sees(&self, node: &str, model: &str) {
        let sees = async || {
            let peers = self.discover().await;
            let has = |peer: &Value| {
                let models = peer["capabilities"]["loadedModels"].as_array();
                peer["nodeID"] == node && models.is_some_and(|all| all.iter().any(|m| *m == model))
            };
            peers.iter().any(has)
        };
        crate::wait::eventually("the node at the relay", crate::DEADLINE, sees).await;
    }

    /// Asks a node for an answer, from relayOpen to relayClose.
    pub async fn ask(&self, node: &str, request: &Value) -> Result<GatewayAnswer, GatewayFailure> {
        let mut session = self.open(node).await?;
        session.ask(request).await;
        let answer = session.answer().await;
        session.close().await;
        answer
    }

    async fn open(&self, node: &str) -> Result<GatewaySession<'_>, GatewayFailure> {
        let session = uuid();
        let (told, events) = mpsc::channel(MAX_WAITING);
        self.shared.sessions().insert(session.clone(), (node.to_owned(), told));
        let mut opened = GatewaySession { gateway: self, node: node.to_owned(), session, events };
        self.say(&forwarded("relayOpen", &self.id, node, &opened.session)).await;
        match timeout(READY, opened.events.recv()).await {
            Ok(Some(Event::Ready)) => Ok(opened),
            Ok(Some(Event::Gone)) => Err(GatewayFailure::NotConnected),
            _ => Err(GatewayFailure::NotReady),
        }
    }

    async fn say(&self, message: &Value) {
        // The relay may have gone.
        let _gone = self.out.lock().await.send(Message::text(message.to_string())).await;
    }
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, (String, mpsc::Sender<Event>)>> {
        self.sessions.lock().unwrap()
    }

    fn take(&self, message: Value) {
        let Value::Object(object) = message else { return };
        let Some((kind, body)) = object.into_iter().next() else { return };
        match kind.as_str() {
            "relayReady" => self.tell(&body, Event::Ready),
            "relayClose" => self.tell(&body, Event::Closed),
            "relayData" => {
                if let Some((kind, said)) = carried(&body).as_ref().and_then(strict::node) {
                    self.tell(&body, Event::Said(kind, said));
                }
            }
            "discoverResponse" => self.found.try_send(body).expect("few answers wait"),
            "peerLeft" => self.gone(&body["nodeID"]),
            "error" => self.error(&body),
            _ => {}
        }
    }

    fn tell(&self, body: &Value, event: Event) {
        let session = body["sessionID"].as_str().unwrap_or_default();
        if let Some((_, waits)) = self.sessions().get(session) {
            // The test may have let go of it.
            let _gone = waits.try_send(event);
        }
    }

    /// A dead node is recognised by the words of the relay's error.
    fn error(&self, body: &Value) {
        let message = body["message"].as_str().unwrap_or_default();
        let node =
            message.strip_prefix("Peer ").and_then(|rest| rest.strip_suffix(" is not connected"));
        if let Some(node) = node.filter(|_| body["code"] == "peer_not_found") {
            self.gone(&json!(node));
        }
    }

    fn gone(&self, gone: &Value) {
        for (node, waits) in self.sessions().values() {
            if node == gone {
                let _gone = waits.try_send(Event::Gone);
            }
        }
    }
}

async fn read_all(mut stream: Stream, shared: Arc<Shared>) {
    while let Some(message) = next(&mut stream).await {
        shared.take(message);
    }
}
