//! Servers of a fleet, and what is asked of them.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::{Value, json};
pub(crate) use testkit::chat::{CHAT, completion, delta};
use testkit::{
    Client, Connect, DEADLINE, Daemon, FakeWorker, Form, Job, Serve, Streaming, eventually,
    nats::NatsServer,
};

/// The administrator's token of all servers.
pub(crate) const OWNER: &str = "wa_the-owners-of-all";

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_warren"))
}

/// A URL of the shared NATS with a group that no other test uses.
pub(crate) fn own_group() -> String {
    static GROUPS: AtomicU32 = AtomicU32::new(0);
    let number = GROUPS.fetch_add(1, Ordering::Relaxed);
    NatsServer::shared().url(&format!("g{}-{number}", std::process::id()))
}

/// A server of this name to be started, in the group of this URL.
pub(crate) fn serve(nats: &str, name: &str) -> Serve {
    Serve::new(binary())
        .set("--cluster", nats)
        .set("--server-name", name)
        .set("--admin-token", OWNER)
}

/// Two servers that have found each other.
pub(crate) async fn two(nats: &str) -> (Daemon, Daemon) {
    let (one, other) = (serve(nats, "one").start().await, serve(nats, "other").start().await);
    sees(&one, 1).await;
    sees(&other, 1).await;
    (one, other)
}

/// The fleet as a server tells it.
pub(crate) async fn fleet(daemon: &Daemon) -> Value {
    daemon.health().await["fleet"].clone()
}

/// Waits until a server sees `others` other servers.
pub(crate) async fn sees(daemon: &Daemon, others: usize) {
    let so =
        async || fleet(daemon).await["servers"].as_array().is_some_and(|all| all.len() == others);
    eventually("the number of other servers", DEADLINE, so).await;
}

/// The owner at a server.
pub(crate) fn owner(daemon: &Daemon) -> Client {
    daemon.client().with_token(OWNER)
}

/// The workers that a server lists.
pub(crate) async fn workers(daemon: &Daemon) -> Vec<Value> {
    let listed = owner(daemon).get("/admin/workers").await.json();
    listed["workers"].as_array().cloned().unwrap_or_default()
}

/// Waits until a server lists `count` workers, its own and others'.
pub(crate) async fn has_workers(daemon: &Daemon, count: usize) {
    let so = async || workers(daemon).await.len() == count;
    eventually("the number of workers", DEADLINE, so).await;
}

/// Waits until a server has no request that waits or is at a worker.
pub(crate) async fn is_idle(daemon: &Daemon) {
    let idle = async || {
        let health = daemon.health().await;
        (&health["queue_depth"], &health["in_flight"]) == (&json!(0), &json!(0))
    };
    eventually("all slots being free", DEADLINE, idle).await;
}

/// A worker of `m` with `slots` slots at a server, which the others see.
pub(crate) async fn worker(at: &Daemon, slots: u32, others: &[&Daemon]) -> FakeWorker {
    let mut before = Vec::new();
    for other in others {
        before.push(workers(other).await.len());
    }
    let worker = Connect::to(at).form(Form::Binary).join("gpu", &["m"], slots).await;
    for (other, before) in others.iter().zip(before) {
        has_workers(other, before + 1).await;
    }
    worker
}

pub(crate) fn ask(stream: bool) -> Value {
    testkit::chat::ask("m", stream)
}

/// A request on its way; its answer is read later.
pub(crate) fn asked(daemon: &Daemon, stream: bool) -> tokio::task::JoinHandle<Streaming> {
    let request = daemon.client().post(CHAT, &ask(stream));
    tokio::spawn(request.start())
}

/// The head of a model's stream.
pub(crate) const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

/// A stream at a server whose first event has come from the other server's worker, and its job there.
pub(crate) async fn begun(home: &Daemon, worker: &mut FakeWorker) -> (Streaming, Job) {
    let answer = asked(home, true);
    let job = worker.expect_job().await;
    worker.begin(&job, 200, EVENTS).await;
    worker.chunk(&job, &delta("a")).await;
    let mut answer = answer.await.unwrap();
    answer.expect(&delta("a")).await;
    (answer, job)
}
