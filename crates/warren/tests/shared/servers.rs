//! Two servers and what is asked of them.

use std::path::Path;

use serde_json::{Value, json};
pub(crate) use testkit::chat::CHAT;
use testkit::{
    Client, Connect, DEADLINE, Daemon, FakeWorker, Form, Response, Serve, eventually,
    postgres::PostgresServer,
};

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_warren"))
}

/// A server to be started that shares this database.
pub(crate) fn sharing(database: &str) -> Serve {
    Serve::new(binary())
        .set("--database", database)
        .set("--admin-token", "wa_the-owners")
        .flag("--require-key")
}

/// Two servers that share a database.
pub(crate) async fn two(postgres: &PostgresServer) -> (Daemon, Daemon) {
    let database = postgres.database();
    (sharing(&database).start().await, sharing(&database).start().await)
}

/// The owner at a server.
pub(crate) fn owner(daemon: &Daemon) -> Client {
    daemon.client().with_token("wa_the-owners")
}

/// A new key: its id and its text.
pub(crate) async fn make_key(daemon: &Daemon) -> (String, String) {
    let made = owner(daemon).post_json("/admin/keys", &json!({"name": "test"})).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let text = |name: &str| made.json()[name].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

pub(crate) async fn revoke(daemon: &Daemon, id: &str) -> Response {
    owner(daemon).request("DELETE", &format!("/admin/keys/{id}")).send().await
}

/// The status of a server's answer to the holder of a text: 200 or 401.
pub(crate) async fn status_for(daemon: &Daemon, text: &str) -> u16 {
    daemon.client().with_token(text).get("/v1/models").await.status
}

/// Waits until a server answers the holder of a text with this status.
pub(crate) async fn answers(daemon: &Daemon, text: &str, status: u16) {
    eventually("the status", DEADLINE, async || status_for(daemon, text).await == status).await;
}

pub(crate) async fn worker(daemon: &Daemon) -> FakeWorker {
    Connect::to(daemon).form(Form::Binary).join("w", &["m"], 4).await
}

pub(crate) fn ask(stream: bool) -> Value {
    testkit::chat::ask("m", stream)
}

/// A request with a key, which a worker answers.
pub(crate) async fn answered(daemon: &Daemon, worker: &mut FakeWorker, key: &str) {
    let asked = daemon.client().with_token(key).post(CHAT, &ask(false)).open().await;
    let job = worker.expect_job().await;
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4});
    worker.complete(&job, 200, &json!({"choices": [], "usage": usage})).await;
    assert_eq!(asked.answer().await.finish().await.status, 200);
}

/// The requests of a key, as a server tells them; `None` while it cannot.
pub(crate) async fn requests(daemon: &Daemon, key: &str) -> Option<u64> {
    let told = owner(daemon).get(&format!("/admin/usage?key={key}")).await;
    (told.status == 200).then(|| told.json()["totals"]["requests"].as_u64())?
}

/// Waits until a server reports `number` requests of a key.
pub(crate) async fn tells_requests(daemon: &Daemon, key: &str, number: u64) {
    let so = async || requests(daemon, key).await == Some(number);
    eventually("the requests in the ledger", DEADLINE, so).await;
}
