//! A Mac on the LAN, in the hands of a test.
//!
//! It knows only the wrapped form and exactly one key, drops everything else without a word, writes
//! ids in upper case and slashes as Swift does, answers one message after the other (its own
//! heartbeats wait behind an answer), and closes without a word when passcodes differ. It sends and
//! takes models with the faults of the real one.
//!
//! - `link`: a link, and what a test does with it
//! - `serve`: what a link does unasked
//! - `files`: models that are sent and taken

mod files;
mod link;
mod serve;

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::{Mutex as AsyncMutex, mpsc},
};

pub use self::link::MacLink;
use super::{
    facts,
    script::Script,
    strict,
    wire::{passcode_hash, read_frame, swift, uuid, wrapped, write_frame},
};
use crate::{
    sockets::{self, Task, accept, any_port},
    wait::within,
};

/// Links that are kept until the test takes them.
const MAX_LINKS: usize = 1_000;

#[derive(Debug, Clone)]
pub struct MacSettings {
    pub name: String,
    /// The id of its device: a UUID in upper case.
    pub device: String,
    /// The models that it says it serves, and does.
    pub models: Vec<String>,
    pub passcode: Option<String>,
    pub script: Script,
    /// The models that it sends: for each its files, in order.
    pub files: BTreeMap<String, Vec<(String, Vec<u8>)>>,
    pub heartbeat: Duration,
}

impl Default for MacSettings {
    fn default() -> Self {
        Self {
            name: "Studio".to_owned(),
            device: uuid().to_uppercase(),
            models: vec!["mlx-community/Qwen3-8B-4bit".to_owned()],
            passcode: None,
            script: Script::text("hello from a mac"),
            files: BTreeMap::new(),
            heartbeat: Duration::from_secs(5),
        }
    }
}

impl MacSettings {
    fn hash(&self) -> Option<String> {
        self.passcode.as_deref().filter(|passcode| !passcode.is_empty()).map(passcode_hash)
    }

    fn greeting(&self) -> Value {
        let device = facts::device(&self.device, &self.name, &facts::mac_hardware(), &self.models);
        let mut body =
            json!({"deviceInfo": device, "protocolVersion": 1, "loadedModels": self.models});
        if let Some(hash) = self.hash() {
            body["clusterPasscodeHash"] = hash.into();
        }
        body
    }

    fn lets_in(&self, hello: &Value) -> bool {
        self.hash().as_deref() == hello["clusterPasscodeHash"].as_str()
    }

    fn heartbeat(&self) -> Value {
        let mut body = facts::heartbeat(&self.device, &self.models);
        if let Some(hash) = self.hash() {
            body["organizationID"] = hash.into();
        }
        body
    }
}

/// A Mac with a listener on a port of its own. Dropping it closes the listener and every link that
/// the test has not taken.
#[derive(Debug)]
pub struct FakeMac {
    settings: Arc<MacSettings>,
    address: SocketAddr,
    links: AsyncMutex<mpsc::Receiver<MacLink>>,
    _accepting: Task,
}

impl FakeMac {
    pub async fn start(settings: MacSettings) -> Self {
        let (listener, address) = sockets::listen(any_port()).await;
        let (settings, (greeted, links)) = (Arc::new(settings), mpsc::channel(MAX_LINKS));
        let own = Arc::clone(&settings);
        let accepting = accept(listener, move |stream| {
            let (settings, greeted) = (Arc::clone(&own), greeted.clone());
            async move {
                if let Some(link) = listen(stream, settings).await {
                    greeted.send(link).await.expect("the Mac is there");
                }
            }
        });
        Self { settings, address, links: AsyncMutex::new(links), _accepting: accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub async fn link(&self) -> MacLink {
        let mut links = self.links.lock().await;
        within("a link to the Mac", links.recv()).await.expect("the Mac is there")
    }

    /// Dials a listener, says hello and waits for the answer; `None` when the other end, or this one
    /// because of another passcode, has closed without one.
    pub async fn dial(&self, address: SocketAddr) -> Option<MacLink> {
        let stream = within("connecting", TcpStream::connect(address)).await;
        let stream = stream.expect("the listener takes connections");
        within("the answer to hello", connect(stream, Arc::clone(&self.settings))).await
    }
}

/// The listener's side: hello comes first, and everything before it is passed over.
async fn listen(mut stream: TcpStream, settings: Arc<MacSettings>) -> Option<MacLink> {
    let hello = greeting_of(&mut stream, "hello").await?;
    if !settings.lets_in(&hello) {
        return None;
    }
    say(&mut stream, &wrapped("helloAck", &settings.greeting())).await?;
    Some(MacLink::start(stream, settings, hello))
}

async fn connect(mut stream: TcpStream, settings: Arc<MacSettings>) -> Option<MacLink> {
    say(&mut stream, &wrapped("hello", &settings.greeting())).await?;
    let ack = greeting_of(&mut stream, "helloAck").await?;
    settings.lets_in(&ack).then(|| MacLink::start(stream, settings, ack))
}

async fn greeting_of(stream: &mut TcpStream, wanted: &str) -> Option<Value> {
    loop {
        let frame = read_frame(stream).await.ok()?;
        let message = serde_json::from_slice(&frame).unwrap_or_default();
        match strict::mac(&message) {
            Some((kind, body)) if kind == wanted => return Some(body),
            _ => {}
        }
    }
}

async fn say(stream: &mut TcpStream, message: &Value) -> Option<()> {
    write_frame(stream, swift(message).as_bytes()).await.ok()
}
