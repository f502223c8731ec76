//! A node behind a relay, in the hands of a test, as stock nodes are.
//!
//! It registers in the flat form with a constant signature, again and again; reads flat relay
//! messages only; answers messages one after the other, wrapped, even in relay sessions that nobody
//! opened; drops without a word what it cannot read; and does not stop when a session is closed.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, interval_at},
};
use tokio_tungstenite::tungstenite::Message;

use super::{
    facts,
    key::MeshKey,
    script::Script,
    socket::{RelaySocket, Sink, Stream, carried, data, forwarded, next, registration},
    strict,
    wire::{uuid, wrapped},
};
use crate::{
    sockets::{self, Task},
    wait::{DEADLINE, eventually},
};

/// Messages that wait for the one that is being answered.
const MAX_WAITING: usize = 10_000;

const MAX_HEARD: usize = 100_000;

/// How often it registers and discovers again.
const EVERY: Duration = Duration::from_secs(10);

const NAME: &str = "Stock Node";

/// A node that is registered. Dropping it ends its connection without a word.
#[derive(Debug)]
pub struct FakeMeshNode {
    shared: Arc<Shared>,
    _tasks: [Task; 2],
}

#[derive(Debug)]
struct Shared {
    key: MeshKey,
    script: Script,
    id: String,
    device: String,
    state: Mutex<NodeState>,
}

#[derive(Debug, Default)]
struct NodeState {
    heard: Vec<(String, Value)>,
    dropped: Vec<Value>,
}

impl FakeMeshNode {
    /// The node of a seed of these bytes.
    pub async fn start(relay: SocketAddr, seed: u8, script: Script) -> Self {
        let key = MeshKey::new([seed; 32]);
        let id = key.id();
        let mut socket = RelaySocket::open(relay, &id).await;
        let shared = Shared { key, script, id, device: uuid(), state: Mutex::default() };
        socket.say(&shared.registration()).await;
        socket.expect("registerAck").await;
        let (sink, stream) = socket.split();
        let shared = Arc::new(shared);
        let (read, waiting) = mpsc::channel(MAX_WAITING);
        let reading = sockets::spawn(read_all(stream, Arc::clone(&shared), read));
        let serving = sockets::spawn(serve(sink, Arc::clone(&shared), waiting));
        Self { shared, _tasks: [reading, serving] }
    }

    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// The bodies of all messages of this kind that were understood.
    pub fn heard_of(&self, kind: &str) -> Vec<Value> {
        let heard = self.shared.state().heard.clone().into_iter();
        heard.filter(|(name, _)| name == kind).map(|(_, body)| body).collect()
    }

    /// Waits until `times` messages of this kind have come, and returns them.
    pub async fn hears(&self, kind: &str, times: usize) -> Vec<Value> {
        let enough = async || self.heard_of(kind).len() >= times;
        eventually(&format!("{times} of {kind} at the node"), DEADLINE, enough).await;
        self.heard_of(kind)
    }

    /// The messages of peers that were dropped without a word; null is what was no JSON.
    pub fn dropped(&self) -> Vec<Value> {
        self.shared.state().dropped.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap()
    }

    fn registration(&self) -> Value {
        registration(&self.key, NAME, &facts::capabilities(self.script.models()))
    }

    /// Takes in a message of the relay. Returns what has to be answered.
    fn take(&self, message: &Value) -> Option<PeerRequest> {
        if let Some(body) = message.get("relayData") {
            return self.data(body);
        }
        let open = message.get("relayOpen")?;
        Some(self.asked(open, "relayOpen".to_owned(), Value::Null)).flatten()
    }

    fn data(&self, body: &Value) -> Option<PeerRequest> {
        let message = carried(body).unwrap_or_default();
        let said = strict::node(&message);
        let mut state = self.state();
        match &said {
            Some(said) if state.heard.len() < MAX_HEARD => state.heard.push(said.clone()),
            None if state.dropped.len() < MAX_HEARD => state.dropped.push(message),
            _ => {}
        }
        drop(state);
        let (kind, said) = said?;
        self.asked(body, kind, said)
    }

    fn asked(&self, ends: &Value, kind: String, body: Value) -> Option<PeerRequest> {
        let (from, session) = (ends["fromNodeID"].as_str()?, ends["sessionID"].as_str()?);
        Some(PeerRequest { from: from.to_owned(), session: session.to_owned(), kind, body })
    }
}

/// A peer's message that is answered.
struct PeerRequest {
    from: String,
    session: String,
    kind: String,
    body: Value,
}

async fn read_all(mut stream: Stream, shared: Arc<Shared>, read: mpsc::Sender<PeerRequest>) {
    while let Some(message) = next(&mut stream).await {
        if let Some(asked) = shared.take(&message)
            && read.send(asked).await.is_err()
        {
            return;
        }
    }
}

async fn serve(mut sink: Sink, shared: Arc<Shared>, mut waiting: mpsc::Receiver<PeerRequest>) {
    let mut again = interval_at(Instant::now() + EVERY, EVERY);
    loop {
        tokio::select! {
            asked = waiting.recv() => match asked {
                Some(asked) => answer(&mut sink, &shared, &asked).await,
                None => return,
            },
            _ = again.tick() => {
                say(&mut sink, &shared.registration()).await;
                say(&mut sink, &json!({"discover": {"requestingNodeID": shared.id}})).await;
            }
        }
    }
}

async fn answer(sink: &mut Sink, shared: &Shared, asked: &PeerRequest) {
    let models = shared.script.models();
    let (kind, body) = match asked.kind.as_str() {
        "relayOpen" => {
            let ready = forwarded("relayReady", &shared.id, &asked.from, &asked.session);
            return say(sink, &ready).await;
        }
        "hello" => {
            let device = facts::device(&shared.device, NAME, &facts::hardware(), models);
            let body = json!({"deviceInfo": device, "loadedModels": models, "protocolVersion": 1});
            ("helloAck", body)
        }
        "heartbeat" => ("heartbeatAck", facts::heartbeat(&uuid(), models)),
        "loadModel" => {
            let reason = "not_swappable: model not in config.swappable_models";
            let Value::Object(mut body) = asked.body.clone() else { return };
            body.insert("reason".to_owned(), json!(reason));
            ("modelLoadError", Value::Object(body))
        }
        "inferenceRequest" => return infer(sink, shared, asked).await,
        _ => return,
    };
    reply(sink, shared, asked, kind, &body).await;
}

async fn infer(sink: &mut Sink, shared: &Shared, asked: &PeerRequest) {
    let models = shared.script.models();
    let id = &asked.body["requestID"];
    let model = asked.body["request"]["model"].as_str().unwrap_or_default().to_lowercase();
    let last = model.rsplit('/').next().unwrap_or_default();
    if !models.iter().any(|served| served.to_lowercase().contains(last)) {
        let message = format!("model '{model}' not loaded on this node (loaded: {models:?})");
        let code = "model_not_loaded";
        let error = json!({"code": code, "errorMessage": message, "requestID": id});
        return reply(sink, shared, asked, "inferenceError", &error).await;
    }
    let chunks = shared.script.chunks();
    for chunk in &chunks {
        let body = json!({"chunk": chunk, "requestID": id});
        reply(sink, shared, asked, "inferenceChunk", &body).await;
    }
    let end = json!({"requestID": id, "tokensOut": chunks.len()});
    reply(sink, shared, asked, "inferenceComplete", &end).await;
}

async fn reply(sink: &mut Sink, shared: &Shared, asked: &PeerRequest, kind: &str, body: &Value) {
    let message = wrapped(kind, body).to_string();
    say(sink, &data(&shared.id, &asked.from, &asked.session, message.as_bytes())).await;
}

async fn say(sink: &mut Sink, message: &Value) {
    // The relay may have gone.
    let _gone = sink.send(Message::text(message.to_string())).await;
}
