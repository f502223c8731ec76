//! A link, and what a test does with it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::{
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, mpsc},
};

use super::{MacSettings, files::Files, serve};
use crate::{
    mesh::{
        strict,
        wire::{read_frame, swift, uuid, wrapped, write_frame},
    },
    sockets::{self, Task},
    wait::{DEADLINE, eventually},
};

/// Messages that wait for the one that is being answered.
const MAX_WAITING: usize = 10_000;

const MAX_HEARD: usize = 100_000;

/// A link between a Mac and another peer. Dropping it ends the connection.
#[derive(Debug)]
pub struct MacLink {
    /// The other end's description of itself.
    pub hello: Value,
    pub(super) shared: Arc<Shared>,
    _tasks: [Task; 2],
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: Arc<MacSettings>,
    pub(super) out: AsyncMutex<OwnedWriteHalf>,
    state: Mutex<LinkState>,
}

#[derive(Debug, Default)]
pub(super) struct LinkState {
    heard: Vec<(String, Value)>,
    dropped: Vec<String>,
    closed: bool,
    pub(super) arriving: HashMap<String, Files>,
    pub(super) taken: usize,
}

impl MacLink {
    pub(super) fn start(stream: TcpStream, settings: Arc<MacSettings>, hello: Value) -> Self {
        stream.set_nodelay(true).expect("a TCP connection");
        let (reading, writing) = stream.into_split();
        let out = AsyncMutex::new(writing);
        let shared = Arc::new(Shared { settings, out, state: Mutex::default() });
        let (read, waiting) = mpsc::channel(MAX_WAITING);
        let reading = sockets::spawn(read_all(reading, Arc::clone(&shared), read));
        let serving = sockets::spawn(serve::serve(Arc::clone(&shared), waiting));
        Self { hello, shared, _tasks: [reading, serving] }
    }

    /// Kind and body of all messages that were understood, but for pieces of models.
    pub fn heard(&self) -> Vec<(String, Value)> {
        self.shared.state().heard.clone()
    }

    pub fn heard_of(&self, kind: &str) -> Vec<Value> {
        self.heard().into_iter().filter(|(name, _)| name == kind).map(|(_, body)| body).collect()
    }

    /// The messages that were dropped without a word, as they came.
    pub fn dropped(&self) -> Vec<String> {
        self.shared.state().dropped.clone()
    }

    /// Waits until `times` messages of this kind have come, and returns them.
    pub async fn hears(&self, kind: &str, times: usize) -> Vec<Value> {
        let enough = async || self.heard_of(kind).len() >= times;
        eventually(&format!("{times} of {kind} at the Mac"), DEADLINE, enough).await;
        self.heard_of(kind)
    }

    pub async fn say(&self, kind: &str, body: &Value) {
        self.shared.say(kind, body).await;
    }

    /// Asks for an answer to this request, and waits for its end: its chunks, and kind and body of the
    /// message that ended it.
    pub async fn ask(&self, request: &Value) -> (Vec<Value>, String, Value) {
        let id = self.ask_for(request).await;
        self.answer(&id).await
    }

    /// Asks for an answer, and returns the request's id.
    pub async fn ask_for(&self, request: &Value) -> String {
        let id = uuid().to_uppercase();
        let body = json!({"requestID": id, "request": request, "streaming": true});
        self.say("inferenceRequest", &body).await;
        id
    }

    /// The answer to the request of this id, once it has ended.
    pub async fn answer(&self, id: &str) -> (Vec<Value>, String, Value) {
        let of = |body: &Value| {
            body["requestID"].as_str().is_some_and(|other| other.eq_ignore_ascii_case(id))
        };
        let end = || {
            let ends = ["inferenceComplete", "inferenceError"];
            let mut heard = self.heard().into_iter();
            heard.find(|(kind, body)| ends.contains(&kind.as_str()) && of(body))
        };
        eventually("the end of an answer to the Mac", DEADLINE, async || end().is_some()).await;
        let (kind, body) = end().expect("it has come");
        let chunks = self.heard_of("inferenceChunk").into_iter().filter(of);
        (chunks.map(|body| body["chunk"].clone()).collect(), kind, body)
    }

    pub async fn query(&self, model: &str) -> Value {
        self.say("modelQuery", &json!({"modelID": model})).await;
        let said = || {
            let mut all = self.heard_of("modelQueryResponse").into_iter();
            all.find(|body| body["modelID"] == model)
        };
        eventually("an answer to the Mac's query", DEADLINE, async || said().is_some()).await;
        said().expect("it has come")
    }

    /// Asks for a model, and waits until it is complete: its files, put together as a Mac does.
    pub async fn fetch(&self, model: &str) -> BTreeMap<String, Vec<u8>> {
        let id = uuid().to_uppercase();
        self.say("modelTransferRequest", &json!({"transferID": id, "modelID": model})).await;
        let complete = async || {
            let all = self.heard_of("modelTransferComplete");
            all.iter().any(|body| body["transferID"].as_str().unwrap().eq_ignore_ascii_case(&id))
        };
        eventually("the Mac's model", DEADLINE, complete).await;
        self.shared.state().arriving.remove(&id).unwrap_or_default().into_files()
    }

    pub fn pieces(&self) -> usize {
        self.shared.state().taken
    }

    pub async fn closed(&self) {
        let closed = async || self.shared.state().closed;
        eventually("the end of the Mac's link", DEADLINE, closed).await;
    }

    pub fn is_closed(&self) -> bool {
        self.shared.state().closed
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap()
    }

    pub(super) async fn say(&self, kind: &str, body: &Value) {
        let text = swift(&wrapped(kind, body));
        // The other end may have closed.
        let _gone = write_frame(&mut *self.out.lock().await, text.as_bytes()).await;
    }

    /// The message in a frame, if a Mac understands it.
    fn take(&self, frame: &[u8]) -> Option<(String, Value)> {
        let message = serde_json::from_slice(frame).unwrap_or_default();
        let said = strict::mac(&message);
        let mut state = self.state();
        match &said {
            Some((kind, body)) if kind == "modelTransferChunk" => state.piece(body),
            Some(said) if state.heard.len() < MAX_HEARD => state.heard.push(said.clone()),
            None if state.dropped.len() < MAX_HEARD => {
                state.dropped.push(String::from_utf8_lossy(frame).into_owned());
            }
            _ => {}
        }
        said
    }
}

impl LinkState {
    fn piece(&mut self, body: &Value) {
        let id = body["transferID"].as_str().unwrap_or_default().to_uppercase();
        self.taken += 1;
        self.arriving.entry(id).or_default().take(body);
    }
}

async fn read_all(
    mut reading: OwnedReadHalf,
    shared: Arc<Shared>,
    read: mpsc::Sender<(String, Value)>,
) {
    while let Ok(frame) = read_frame(&mut reading).await {
        let Some(said) = shared.take(&frame) else { continue };
        if serve::is_for_it(&said.0) && read.send(said).await.is_err() {
            break;
        }
    }
    shared.state().closed = true;
}
