//! Walkthrough 7: nobody serves the model.

use std::path::Path;

use serde_json::json;
use testkit::{Connect, DEADLINE, Daemon, Form, eventually};

use crate::common::{
    CHAT, MESSAGES, ask, ask_for, assert_anthropic_error, assert_openai_error, both_forms, join,
    post, serve,
};

both_forms!(an_unknown_model_is_refused_at_once, a_wildcard_serves_every_model);

async fn an_unknown_model_is_refused_at_once(form: Form) {
    let daemon = serve().start().await;
    let _worker = join(&daemon, form, "w", 1).await;
    let refused = daemon.client().post_json(CHAT, &ask_for("llama3-8b", false)).await;
    assert_openai_error(&refused, 404, "no provider for model llama3-8b");
    let refused = daemon.client().post_json(CHAT, &ask_for("llama3-8b", true)).await;
    assert_openai_error(&refused, 404, "no provider for model llama3-8b");
    let refused = daemon.client().post_json(MESSAGES, &ask_for("llama3-8b", false)).await;
    let words = "no provider for model llama3-8b";
    assert_anthropic_error(&refused, 404, "not_found_error", words);
    let missing = daemon.client().get("/v1/models/llama3-8b").await;
    assert_eq!(missing.status, 404);
}

/// A request for `m` waits for a worker; one for another model does not.
async fn waits_for_m_alone(daemon: &Daemon, form: Form) {
    let answer = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    let unknown = daemon.client().post_json(CHAT, &ask_for("other", false)).await;
    assert_openai_error(&unknown, 404, "no provider for model other");
    let mut worker = join(daemon, form, "w", 1).await;
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({"waited": true})).await;
    assert_eq!(answer.await.unwrap().json(), json!({"waited": true}));
}

#[tokio::test]
async fn a_model_is_known_after_a_restart() {
    let mut daemon = serve().start().await;
    join(&daemon, Form::Stock, "w", 1).await.close().await;
    daemon.has_workers(0).await;
    daemon.stop_and_restart().await;
    waits_for_m_alone(&daemon, Form::Stock).await;
}

/// It is written down when it comes, not only when the server ends.
#[tokio::test]
async fn a_model_is_known_after_a_kill() {
    let serve = serve();
    let database = serve.data_dir().join("warren.db");
    let mut daemon = serve.start().await;
    let _worker = join(&daemon, Form::Stock, "w", 1).await;
    let written = async || is_known(&database).unwrap_or(false);
    eventually("the model in the database", DEADLINE, written).await;
    daemon.kill_and_restart().await;
    waits_for_m_alone(&daemon, Form::Stock).await;
}

/// Whether the model `m` is written down, while the server runs.
fn is_known(database: &Path) -> rusqlite::Result<bool> {
    let database = rusqlite::Connection::open_with_flags(
        database,
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    )?;
    database.query_row("SELECT COUNT(*) > 0 FROM models WHERE model = 'm'", [], |row| row.get(0))
}

async fn a_wildcard_serves_every_model(form: Form) {
    let daemon = serve().start().await;
    let mut worker = Connect::to(&daemon).form(form).join("any", &["*"], 1).await;
    let answer = post(&daemon.client(), CHAT, ask_for("whatever", false));
    let job = worker.expect_job().await;
    assert_eq!(job.model, "whatever");
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(answer.await.unwrap().status, 200);
    let models = daemon.client().get("/v1/models").await.json();
    assert_eq!(models["data"], json!([]), "the wildcard is not a model's name");
}
