//! Servers that act as one, and a room among them.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Client, DEADLINE, Daemon, FakeParticipant, MockBackend, Put, Response, Serve, Streaming,
    eventually, nats::NatsServer, postgres::PostgresServer, within,
};
use tokio_util::sync::CancellationToken;
use worker::{
    BackendConfig, JoinRoom, Lend, NetDialer, Protocol, ServerTarget, Worker, WorkerConfig,
};

/// A server to be started, of this name, among those that share this database and meet at this NATS.
pub(crate) fn server(database: &str, nats: &str, name: &str) -> Serve {
    Serve::new(Path::new(env!("CARGO_BIN_EXE_warren")))
        .set("--database", database)
        .set("--cluster", nats)
        .set("--server-name", name)
        .set("--admin-token", "wa_the-owners")
        .set("--room-endpoints", "any")
}

/// Servers of these names, which know each other.
pub(crate) async fn servers<const N: usize>(nats: &str, names: [&str; N]) -> [Daemon; N] {
    servers_with(&PostgresServer::shared().database(), nats, names).await
}

/// The same with this database.
pub(crate) async fn servers_with<const N: usize>(
    database: &str,
    nats: &str,
    names: [&str; N],
) -> [Daemon; N] {
    let starting = names.map(|name| server(database, nats, name).start());
    let mut servers = Vec::new();
    for daemon in starting {
        servers.push(daemon.await);
    }
    for daemon in &servers {
        knows(daemon, N - 1).await;
    }
    servers.try_into().unwrap()
}

/// The URL of a NATS that all tests share, for servers of a group of their own.
pub(crate) fn nats(group: &str) -> String {
    NatsServer::shared().url(group)
}

/// Waits until a server knows `others` other servers.
pub(crate) async fn knows(daemon: &Daemon, others: usize) {
    let wanted = format!("warren_fleet_servers {}", others + 1);
    let so = async || daemon.metrics().await.lines().any(|line| line.starts_with(&wanted));
    eventually("the other servers", DEADLINE, so).await;
}

/// A room that was made.
pub(crate) struct Room {
    pub(crate) code: String,
    pub(crate) id: String,
    host_token: String,
}

impl Room {
    pub(crate) async fn make(at: &Daemon, body: Value) -> Self {
        let made = at.client().post_json("/v1/rooms", &body).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let data = &made.json()["data"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            code: text(&data["room"]["code"]),
            id: text(&data["room"]["id"]),
            host_token: text(&data["hostToken"]),
        }
    }

    pub(crate) fn plane(&self, rest: &str) -> String {
        format!("/v1/rooms/{}{rest}", self.code)
    }

    /// A participant that lends the model `m` by a tunnel.
    pub(crate) async fn tunnel(&self, at: &Daemon, id: &str) -> FakeParticipant {
        let put = Put::new(at.address(), &self.code).id(id);
        let mut participant = put.beating(Duration::from_millis(200)).join().await;
        participant.expect_pong().await;
        participant
    }

    /// A Warren that lends a backend, and comes back whenever it is cut off.
    pub(crate) fn worker(&self, at: &Daemon, id: &str, backend: &MockBackend) -> Lender {
        let join = JoinRoom::new(&self.code, id, id);
        let server = ServerTarget::new(&at.url(), None).unwrap().in_room(join);
        let config = WorkerConfig {
            servers: vec![server],
            backends: vec![Lend::Http(BackendConfig::new(backend.url()))],
            protocol: Protocol::Relay,
            ..WorkerConfig::new(id)
        };
        let worker = Worker::new(config, NetDialer).unwrap();
        let shutdown = CancellationToken::new();
        tokio::spawn(worker.run(shutdown.clone()));
        Lender { _shutdown: Arc::new(shutdown.drop_guard()) }
    }

    pub(crate) async fn ask(&self, at: &Client, model: &str) -> Response {
        at.post_json(&format!("/rooms/{}/v1/chat/completions", self.code), &ask(model, false)).await
    }

    /// Waits until a server lists this participant as online.
    pub(crate) async fn has(&self, at: &Daemon, id: &str) {
        let so = async || {
            let told = at.client().get(&self.plane(&format!("/participants/{id}"))).await;
            told.status == 200 && told.json()["data"]["status"] == "online"
        };
        eventually("the participant", DEADLINE, so).await;
    }

    pub(crate) async fn watch(&self, at: &Daemon) -> Watch {
        self.watch_after(at, None).await
    }

    pub(crate) async fn watch_after(&self, at: &Daemon, after: Option<u64>) -> Watch {
        self.try_watch(at, after).await.unwrap()
    }

    /// The same, if the room is served through this server now.
    pub(crate) async fn try_watch(&self, at: &Daemon, after: Option<u64>) -> Option<Watch> {
        let request = at.client().request("GET", &self.plane("/events?ids=true"));
        let request = match after {
            Some(id) => request.header("last-event-id", &id.to_string()),
            None => request,
        };
        let answer = request.start().await;
        (answer.status == 200).then(|| Watch { answer, read: String::new() })
    }

    pub(crate) async fn close(&self, at: &Daemon) {
        let host = at.client().with_header("x-warren-host-token", &self.host_token);
        let closed = host.request("DELETE", &self.plane("")).send().await;
        assert_eq!(closed.status, 200, "{}", closed.text());
    }
}

/// A worker, until this is dropped.
pub(crate) struct Lender {
    _shutdown: Arc<tokio_util::sync::DropGuard>,
}

pub(crate) fn ask(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

/// A stream of a room's events.
pub(crate) struct Watch {
    answer: Streaming,
    read: String,
}

/// An event: its id and its name. A comment has neither.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: Option<String>,
}

impl Event {
    /// The epoch of its id.
    pub(crate) fn epoch(&self) -> u64 {
        self.id.unwrap() >> 40
    }
}

impl Watch {
    /// The next event or comment, pings aside; nothing when the stream is over, however it ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        within("the next event", async {
            loop {
                while let Some(end) = self.read.find("\n\n") {
                    let text: String = self.read.drain(..end + 2).collect();
                    if text != ": ping\n\n" {
                        return Some(event(&text));
                    }
                }
                let chunk = self.answer.try_chunk().await.ok().flatten()?;
                self.read.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        })
        .await
    }

    /// The next `number` events.
    pub(crate) async fn take(&mut self, number: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < number {
            events.push(self.next().await.expect("another event"));
        }
        events
    }

    /// All events up to the first of this name.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("{name} after {events:?}"));
            let is_it = event.name.as_deref() == Some(name);
            events.push(event);
            if is_it {
                return events;
            }
        }
    }
}

fn event(text: &str) -> Event {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let id = line("id: ").map(|id| id.parse().unwrap());
    Event { id, name: line("event: ").map(str::to_owned) }
}
