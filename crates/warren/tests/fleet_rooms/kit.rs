//! Servers that act as one, and a room among them.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Client, DEADLINE, Daemon, FakeParticipant, MockBackend, Response, Room, RoomEvent, RoomEvents,
    Serve, eventually, nats::NatsServer, postgres::PostgresServer,
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

/// A participant of a room that lends the model `m` by a tunnel.
pub(crate) async fn tunnel(room: &Room, at: &Daemon, id: &str) -> FakeParticipant {
    let put = room.put(at, id).beating(Duration::from_millis(200));
    let mut participant = put.join().await;
    participant.expect_pong().await;
    participant
}

/// A Warren that lends a backend to a room, and comes back whenever it is cut off.
pub(crate) fn worker(room: &Room, at: &Daemon, id: &str, backend: &MockBackend) -> Lender {
    let join = JoinRoom::new(&room.code, id, id);
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

pub(crate) async fn asks(room: &Room, at: &Client, model: &str) -> Response {
    at.post_json(&room.chat(), &ask(model, false)).await
}

/// Waits until a server lists this participant of a room as online.
pub(crate) async fn has(room: &Room, at: &Daemon, id: &str) {
    let so = async || {
        let told = at.client().get(&room.plane(&format!("/participants/{id}"))).await;
        told.status == 200 && told.json()["data"]["status"] == "online"
    };
    eventually("the participant", DEADLINE, so).await;
}

pub(crate) async fn watch(room: &Room, at: &Daemon) -> RoomEvents {
    watch_after(room, at, None).await.unwrap()
}

/// The events of a room after this one, if it is served through this server now.
pub(crate) async fn watch_after(
    room: &Room,
    at: &Daemon,
    after: Option<u64>,
) -> Option<RoomEvents> {
    let request = at.client().request("GET", &room.plane("/events?ids=true"));
    let request = match after {
        Some(id) => request.header("last-event-id", &id.to_string()),
        None => request,
    };
    RoomEvents::of(request.start().await)
}

/// The epoch of an event's id.
pub(crate) fn epoch_of(event: &RoomEvent) -> u64 {
    event.id.unwrap() >> 40
}

/// A worker, until this is dropped.
pub(crate) struct Lender {
    _shutdown: Arc<tokio_util::sync::DropGuard>,
}

pub(crate) fn ask(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}
