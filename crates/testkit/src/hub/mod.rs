//! A stock-shaped server of rooms in the hands of a test.
//!
//! It has the HTTP API with its envelopes, named events, tunnels and the inference of a room, one
//! request of a participant at a time, as the stock one has them; it is no Warren, and says nothing
//! that only a Warren says. Its JSON is written out literally, and it shares no code with the house.
//! Requests of a room go to any connected participant; the test can also speak on a tunnel itself.
//!
//! - `plane`: the HTTP API
//! - `rooms`: what there is in the rooms
//! - `tunnel`: a participant's WebSocket
//! - `inference`: a room's requests

mod inference;
mod plane;
mod rooms;
mod tunnel;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    sync::{Mutex as AsyncMutex, mpsc},
};

use self::rooms::HubState;
pub use self::tunnel::HubTunnel;
use crate::{
    http1::{Framing, Reader},
    sockets::{Task, accept, any_port, listen},
    wait::{DEADLINE, eventually, within},
};

/// Tunnels that are kept until the test takes them.
const MAX_TUNNELS: usize = 1_000;

/// The most of a head that is looked at before it is taken.
const MAX_PEEK: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRequest {
    pub line: String,
    /// The credential in `Authorization`, if there was one.
    pub authorization: Option<String>,
    pub body: Value,
}

/// A hub on a port of its own. Dropping it resets every connection.
#[derive(Debug)]
#[must_use]
pub struct FakeHub {
    address: SocketAddr,
    shared: Arc<Shared>,
    tunnels: AsyncMutex<mpsc::Receiver<HubTunnel>>,
    _accepting: Task,
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    state: Mutex<HubState>,
    opened: mpsc::Sender<HubTunnel>,
}

impl FakeHub {
    pub async fn start(code: &str) -> Self {
        Self::start_with(code, None).await
    }

    pub async fn start_with(code: &str, password: Option<&str>) -> Self {
        let (listener, address) = listen(any_port()).await;
        let (opened, tunnels) = mpsc::channel(MAX_TUNNELS);
        let shared = Shared { address, state: Mutex::default(), opened };
        shared.state().add_room(code, "Room", password);
        let shared = Arc::new(shared);
        let own = Arc::clone(&shared);
        let accepting = accept(listener, move |stream| connection(stream, Arc::clone(&own)));
        Self { address, shared, tunnels: AsyncMutex::new(tunnels), _accepting: accepting }
    }

    /// Gives a session token to every participant that joins, as only a Warren does.
    pub fn as_warren(self) -> Self {
        self.shared.state().is_warren = true;
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub async fn tunnel(&self) -> HubTunnel {
        let mut tunnels = self.tunnels.lock().await;
        within("a tunnel", tunnels.recv()).await.expect("the hub is there")
    }

    pub fn heard(&self) -> Vec<HubRequest> {
        self.shared.state().heard.clone()
    }

    /// The requests so far whose line begins like this.
    pub fn heard_at(&self, line: &str) -> Vec<HubRequest> {
        self.heard().into_iter().filter(|heard| heard.line.starts_with(line)).collect()
    }

    /// Waits until `times` requests have come whose request line begins like this, and returns them.
    pub async fn hears(&self, line: &str, times: usize) -> Vec<HubRequest> {
        let enough = async || self.heard_at(line).len() >= times;
        eventually(&format!("{times} of {line}"), DEADLINE, enough).await;
        self.heard_at(line)
    }

    /// Answers the next `times` heartbeats with a 500.
    pub fn fail_heartbeats(&self, times: usize) {
        self.shared.state().failing_heartbeats = times;
    }

    /// Answers the next `times` joins with this status and error code.
    pub fn refuse_joins(&self, times: usize, status: u16, code: &'static str) {
        self.shared.state().refusing_joins = (times, status, code);
    }

    pub fn forget_room(&self, code: &str) {
        self.shared.state().rooms.remove(code);
    }

    /// Whether this participant is in a room, and if so whether its tunnel is.
    pub fn has(&self, code: &str, participant: &str) -> Option<bool> {
        self.shared.state().rooms.get(code)?.connected(participant)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap()
    }
}

struct ApiRequest {
    method: String,
    path: String,
    body: Bytes,
}

impl ApiRequest {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn parts(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }
}

/// One connection carries one request.
async fn connection(mut stream: TcpStream, shared: Arc<Shared>) {
    if asks_for_websocket(&stream).await {
        return tunnel::accept(stream, &shared).await;
    }
    let (reading, mut writing) = stream.split();
    let mut reader = Reader::new(reading);
    let Ok(Some(head)) = reader.head().await else { return };
    let Ok(body) = reader.rest(Framing::of_request(&head)).await else { return };
    let [method, target, _] = head.words();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let asked = ApiRequest { method: method.to_owned(), path, body };
    shared.state().heard.push(HubRequest {
        line: format!("{method} {target}"),
        authorization: head.header("authorization").map(str::to_owned),
        body: asked.json(),
    });
    plane::answer(&asked, &shared, &mut writing).await;
    // The client may have gone.
    let _gone = writing.shutdown().await;
}

async fn asks_for_websocket(stream: &TcpStream) -> bool {
    let mut head = vec![0; MAX_PEEK];
    loop {
        let Ok(1..) = stream.peek(&mut head[..1]).await else { return false };
        let Ok(read) = stream.peek(&mut head).await else { return false };
        let text = String::from_utf8_lossy(&head[..read]).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            return head.contains("\r\nupgrade: websocket");
        }
        if read == MAX_PEEK {
            return false;
        }
        tokio::task::yield_now().await;
    }
}
