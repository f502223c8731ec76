//! A Mac on the LAN, in the hands of a test.
//!
//! It knows only the wrapped form and exactly one key, drops everything else without a word, writes
//! ids in upper case and slashes as Swift does, and answers one message after the other: its own
//! heartbeats wait behind an answer.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, mpsc},
    time::{Instant, interval_at},
};

use super::{
    facts,
    script::Script,
    strict,
    wire::{read_frame, swift, uuid, wrapped, write_frame},
};
use crate::{
    sockets::{self, Task, accept, any_port},
    wait::{DEADLINE, eventually, within},
};

/// Links that are kept until the test takes them.
const MAX_LINKS: usize = 1_000;

/// Messages that wait for the one that is being answered.
const MAX_WAITING: usize = 10_000;

const MAX_HEARD: usize = 100_000;

const HEARTBEAT: Duration = Duration::from_secs(5);

/// A Mac with a listener on a port of its own. Dropping it closes the listener and every link that
/// the test has not taken.
#[derive(Debug)]
pub struct FakeMac {
    address: SocketAddr,
    links: AsyncMutex<mpsc::Receiver<MacLink>>,
    _accepting: Task,
}

/// A link between a Mac and another peer. Dropping it ends the connection.
#[derive(Debug)]
pub struct MacLink {
    heard: Arc<Mutex<Heard>>,
    _tasks: [Task; 2],
}

#[derive(Debug, Default)]
struct Heard {
    messages: Vec<(String, Value)>,
    dropped: Vec<String>,
}

impl FakeMac {
    /// A Mac that answers by this script for its only model.
    pub async fn start(script: Script) -> Self {
        let (listener, address) = sockets::listen(any_port()).await;
        let (greeted, links) = mpsc::channel(MAX_LINKS);
        let accepting = accept(listener, move |stream| {
            let (script, greeted) = (script.clone(), greeted.clone());
            async move {
                if let Some(link) = greet(stream, script).await {
                    greeted.send(link).await.expect("the Mac is there");
                }
            }
        });
        Self { address, links: AsyncMutex::new(links), _accepting: accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn link(&self) -> MacLink {
        let mut links = self.links.lock().await;
        within("a link to the Mac", links.recv()).await.expect("the Mac is there")
    }
}

/// Hello comes first, and everything before it is passed over.
async fn greet(mut stream: TcpStream, script: Script) -> Option<MacLink> {
    loop {
        let frame = read_frame(&mut stream).await.ok()?;
        let said = strict::mac(&serde_json::from_slice(&frame).unwrap_or_default());
        if said.is_some_and(|(kind, _)| kind == "hello") {
            break;
        }
    }
    stream.set_nodelay(true).expect("a TCP connection");
    let (reading, writing) = stream.into_split();
    let mut mac = Mac { device: uuid().to_uppercase(), script, out: writing };
    let models = mac.script.models();
    let device = facts::device(&mac.device, "Studio", &facts::mac_hardware(), models);
    let ack = json!({"deviceInfo": device, "protocolVersion": 1, "loadedModels": models});
    mac.say("helloAck", &ack).await;
    let heard = Arc::<Mutex<Heard>>::default();
    let (read, waiting) = mpsc::channel(MAX_WAITING);
    let reading = sockets::spawn(read_all(reading, Arc::clone(&heard), read));
    let serving = sockets::spawn(mac.serve(waiting));
    Some(MacLink { heard, _tasks: [reading, serving] })
}

impl MacLink {
    /// Waits until `times` messages of this kind have come, and returns them.
    pub async fn hears(&self, kind: &str, times: usize) -> Vec<Value> {
        let of = || {
            let heard = self.heard.lock().unwrap().messages.clone().into_iter();
            heard.filter(|(name, _)| name == kind).map(|(_, body)| body).collect::<Vec<_>>()
        };
        let enough = async || of().len() >= times;
        eventually(&format!("{times} of {kind} at the Mac"), DEADLINE, enough).await;
        of()
    }

    /// The messages that were dropped without a word, as they came.
    pub fn dropped(&self) -> Vec<String> {
        self.heard.lock().unwrap().dropped.clone()
    }
}

impl Heard {
    /// The message in a frame, if a Mac understands it.
    fn take(&mut self, frame: &[u8]) -> Option<(String, Value)> {
        let said = strict::mac(&serde_json::from_slice(frame).unwrap_or_default());
        match &said {
            Some(said) if self.messages.len() < MAX_HEARD => self.messages.push(said.clone()),
            None if self.dropped.len() < MAX_HEARD => {
                self.dropped.push(String::from_utf8_lossy(frame).into_owned());
            }
            _ => {}
        }
        said
    }
}

async fn read_all(
    mut reading: OwnedReadHalf,
    heard: Arc<Mutex<Heard>>,
    read: mpsc::Sender<(String, Value)>,
) {
    while let Ok(frame) = read_frame(&mut reading).await {
        let said = heard.lock().unwrap().take(&frame);
        if let Some(said) = said
            && read.send(said).await.is_err()
        {
            return;
        }
    }
}

/// The end of a link that speaks.
struct Mac {
    device: String,
    script: Script,
    out: OwnedWriteHalf,
}

impl Mac {
    /// Answers one message after the other, until the other end is gone.
    async fn serve(mut self, mut waiting: mpsc::Receiver<(String, Value)>) {
        let mut beat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            let kind = tokio::select! {
                said = waiting.recv() => match said {
                    Some((kind, body)) if kind == "inferenceRequest" => {
                        self.infer(&body).await;
                        continue;
                    }
                    Some((kind, _)) if kind == "heartbeat" => "heartbeatAck",
                    Some(_) => continue,
                    None => return,
                },
                _ = beat.tick() => "heartbeat",
            };
            let beat = facts::heartbeat(&self.device, self.script.models());
            self.say(kind, &beat).await;
        }
    }

    async fn infer(&mut self, body: &Value) {
        let id = json!(body["requestID"].as_str().map(str::to_uppercase));
        let model = &body["request"]["model"];
        if self.script.models().iter().all(|served| *served != *model) {
            let message = format!("Model {model} is not loaded");
            let error = json!({"requestID": id, "errorMessage": message});
            return self.say("inferenceError", &error).await;
        }
        for chunk in self.script.chunks() {
            self.say("inferenceChunk", &json!({"requestID": id, "chunk": chunk})).await;
        }
        // Macs do not count tokens.
        self.say("inferenceComplete", &json!({"requestID": id})).await;
    }

    async fn say(&mut self, kind: &str, body: &Value) {
        // The other end may have closed.
        let _gone = write_frame(&mut self.out, swift(&wrapped(kind, body)).as_bytes()).await;
    }
}
