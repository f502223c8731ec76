//! A stock participant of a room in the hands of a test.
//!
//! It joins with a `PUT`, opens its tunnel with the token that it is given, pings and sends heartbeats
//! as stock ones do, and as they do ends with a `DELETE` at the first heartbeat that fails. Its JSON is
//! written out literally; it shares no code with the house.

mod speak;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;

use self::speak::Socket;
pub use self::speak::TunnelAsk;
use crate::{
    Client, Response,
    sockets::{self, Task},
    wait::within,
};

/// How often a stock participant pings, and how often it sends a heartbeat.
pub const STOCK_BEAT: Duration = Duration::from_secs(10);

/// The join of a participant.
#[derive(Debug, Clone)]
#[must_use]
pub struct Put {
    address: SocketAddr,
    code: String,
    id: String,
    body: Value,
    beat: Duration,
}

/// A participant with a tunnel. Dropping it ends the tunnel without a word.
pub struct FakeParticipant {
    /// The server's answer when it joined, without the envelope.
    pub joined: Value,
    path: String,
    client: Client,
    socket: Socket,
    beating: Task,
    ended: Arc<AtomicBool>,
}

impl Put {
    /// A participant `p1`, called Ann, with the model `m`, in the room of this code.
    pub fn new(address: SocketAddr, code: &str) -> Self {
        let body = json!({"nickname": "Ann", "model": "m", "endpoint": "http://127.0.0.1:1"});
        let (code, id) = (code.to_owned(), "p1".to_owned());
        Self { address, code, id, body, beat: STOCK_BEAT }
    }

    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    pub fn model(self, model: &str) -> Self {
        self.field("model", json!(model))
    }

    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.body[name] = value;
        self
    }

    /// Sets how often it pings and sends heartbeats, instead of every 10 s.
    pub fn beating(mut self, every: Duration) -> Self {
        self.beat = every;
        self
    }

    pub async fn put(&self) -> Response {
        let path = format!("/v1/rooms/{}/participants/{}", self.code, self.id);
        let request = Client::new(self.address).request("PUT", &path);
        request.header("content-type", "application/json").body(self.body.to_string()).send().await
    }

    pub async fn join(self) -> FakeParticipant {
        let response = self.put().await;
        assert!(matches!(response.status, 200 | 201), "{}", response.text());
        let joined = response.json()["data"].clone();
        let url = joined["tunnel"]["url"].as_str().expect("where the tunnel is").to_owned();
        let token = joined["tunnel"]["token"].as_str().expect("a token").to_owned();
        let socket = self.open(&url, &token).await;
        let path = format!("/v1/rooms/{}/participants/{}", self.code, self.id);
        let client = Client::new(self.address);
        let ended = Arc::new(AtomicBool::new(false));
        let beating = beat(&socket, self.beat, (client.clone(), path.clone()), Arc::clone(&ended));
        let beating = sockets::spawn(beating);
        FakeParticipant { joined, path, client, socket, beating, ended }
    }

    /// The same, once the server has heard it on its tunnel.
    pub async fn heard(self) -> FakeParticipant {
        let mut participant = self.join().await;
        participant.expect_pong().await;
        participant
    }

    async fn open(&self, url: &str, token: &str) -> Socket {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let upgrade = client_async(format!("{url}?token={token}"), stream);
        let (socket, _) = within("the upgrade", upgrade).await.expect("the tunnel is opened");
        Socket::new(socket)
    }
}

impl FakeParticipant {
    pub async fn heartbeat(&self) -> Response {
        self.client.request("POST", &format!("{}/heartbeat", self.path)).send().await
    }

    /// Leaves as it does on Ctrl-C: a `DELETE`, and the tunnel is closed.
    pub async fn leave(self) -> Response {
        self.beating.abort();
        let response = self.client.request("DELETE", &self.path).send().await;
        self.socket.close().await;
        response
    }

    /// Whether it has ended itself, since a heartbeat failed.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub fn fall_silent(&self) {
        self.beating.abort();
    }
}

impl std::fmt::Debug for FakeParticipant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeParticipant").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Pings and sends heartbeats until one fails; then it leaves, as stock ones do.
fn beat(
    socket: &Socket,
    every: Duration,
    (client, path): (Client, String),
    ended: Arc<AtomicBool>,
) -> impl Future<Output = ()> + use<> {
    let out = socket.out();
    async move {
        let mut ticks = tokio::time::interval(every);
        loop {
            ticks.tick().await;
            let alive = speak::ping(&out).await;
            let heartbeat = client.request("POST", &format!("{path}/heartbeat"));
            if !alive || heartbeat.send().await.status != 200 {
                break;
            }
        }
        let _left = client.request("DELETE", &path).send().await;
        ended.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DEADLINE, FakeHub, eventually};

    const BEAT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_participant_of_the_hub_answers_its_room() {
        let hub = FakeHub::start("ABC123").await;
        let mut participant = Put::new(hub.address(), "ABC123").beating(BEAT).join().await;
        hub.hears("POST /v1/rooms/ABC123/participants/p1/heartbeat", 2).await;
        let client = Client::new(hub.address());
        let body = json!({"model": "model:m", "messages": []});
        let path = "/rooms/ABC123/v1/chat/completions";
        let asked = tokio::spawn(async move { client.post_json(path, &body).await });
        let request = participant.expect_request().await;
        participant.answer(&request, 200, &json!({"n": 1})).await;
        assert_eq!(asked.await.unwrap().json(), json!({"n": 1}));
        assert_eq!(participant.leave().await.status, 200);
        assert_eq!(hub.has("ABC123", "p1"), None);
    }

    #[tokio::test]
    async fn one_failed_heartbeat_ends_a_stock_participant() {
        let hub = FakeHub::start("ABC123").await;
        let participant = Put::new(hub.address(), "ABC123").beating(BEAT).join().await;
        hub.fail_heartbeats(1);
        let ended = async || participant.has_ended();
        eventually("its end", DEADLINE, ended).await;
        assert_eq!(hub.has("ABC123", "p1"), None);
    }
}
