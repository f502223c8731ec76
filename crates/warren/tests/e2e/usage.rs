//! The ledger: a row for every job however it ended, and a disk that does not work.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::{DEADLINE, Daemon, Form, Gate, MockBackend, Reply, Serve, eventually};

use crate::{
    cli::{make_key, warren, with_key},
    common::{CHAT, ask, ask_for, join, lend, serve},
};

/// A server and where its database is.
async fn started(serve: Serve) -> (Daemon, PathBuf) {
    let path = serve.data_dir().join("warren.db");
    (serve.start().await, path)
}

async fn usage(daemon: &Daemon, query: &str) -> Value {
    let answer = daemon.admin().get(&format!("/admin/usage?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn has_rows(daemon: &Daemon, count: u64) {
    let written = async || usage(daemon, "").await["totals"]["requests"] == count;
    eventually("the rows of the ledger", DEADLINE, written).await;
}

/// One column of the only row of a model.
fn cell<T: rusqlite::types::FromSql>(path: &Path, model: &str, column: &str) -> T {
    let database = Connection::open(path).unwrap();
    let sql = format!("SELECT {column} FROM usage WHERE model = ?1");
    database.query_row(&sql, [model], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn every_job_has_a_row_however_it_ends() {
    let (daemon, path) = started(serve()).await;
    let (id, key) = make_key(&daemon, json!({})).await;
    let client = with_key(&daemon, &key);
    let connect = testkit::Connect::to(&daemon).form(Form::Binary);
    let mut worker = connect.join("gpu", &["plain", "streamed", "left", "failed"], 4).await;
    let answer = json!({"usage": {"prompt_tokens": 3, "completion_tokens": 2}});

    let posted = crate::common::post(&client, CHAT, ask_for("plain", false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &answer).await;
    assert_eq!(posted.await.unwrap().status, 200);

    let posted = crate::common::post(&client, CHAT, ask_for("streamed", true));
    let job = worker.expect_job().await;
    let usage_chunk = "{\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}";
    worker.chunk(&job, &format!("data: {usage_chunk}\n\ndata: [DONE]\n\n")).await;
    worker.finish(&job).await;
    assert_eq!(posted.await.unwrap().status, 200);

    let leaving = client.post(CHAT, &ask_for("left", true)).open().await;
    let job = worker.expect_job().await;
    let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    worker.chunk(&job, &delta.repeat(4)).await;
    let mut streaming = leaving.answer().await;
    streaming.expect(&delta.repeat(4)).await;
    drop(streaming);
    worker.expect_cancel().await;

    let posted = crate::common::post(&client, CHAT, ask_for("failed", false));
    let job = worker.expect_job().await;
    worker.fail(&job, "broken", "it broke").await;
    assert_eq!(posted.await.unwrap().status, 502);
    let nobody = client.post_json(CHAT, &ask_for("nobody", false)).await;
    assert_eq!(nobody.status, 404);
    has_rows(&daemon, 5).await;

    let outcome = |model: &str| cell::<String>(&path, model, "outcome");
    let outcomes = ["plain", "streamed", "left", "failed", "unknown"].map(outcome);
    assert_eq!(outcomes, ["answered", "answered", "client_gone", "worker_failed", "no_provider"]);
    let tokens = |model: &str| {
        let count = |column: &str| cell::<Option<i64>>(&path, model, column);
        (
            count("prompt_tokens"),
            count("completion_tokens"),
            cell::<bool>(&path, model, "estimated"),
        )
    };
    assert_eq!(tokens("plain"), (Some(3), Some(2), false));
    assert_eq!(tokens("streamed"), (Some(7), Some(5), false));
    let (prompt, completion, estimated) = tokens("left");
    assert!(prompt.is_some() && estimated, "estimated");
    assert_eq!(completion, Some(4), "counted for what it got");
    assert_eq!(cell::<Option<u16>>(&path, "plain", "status"), Some(200));
    assert_eq!(cell::<Option<u16>>(&path, "failed", "status"), None);
    assert_eq!(cell::<String>(&path, "plain", "provider"), "gpu");
    assert_eq!(cell::<Option<String>>(&path, "unknown", "provider"), None);
    assert_eq!(cell::<String>(&path, "plain", "api"), CHAT);
    assert!(cell::<bool>(&path, "streamed", "streaming"));
    assert!(cell::<Option<i64>>(&path, "plain", "first_byte_ms").is_some());

    let by_key = usage(&daemon, "by=key").await;
    assert_eq!(
        (&by_key["rows"][0]["key"], &by_key["rows"][0]["requests"]),
        (&json!(id), &json!(5))
    );
    assert_eq!(by_key["totals"]["errors"], 2, "a client that left is no error");
}

/// The same as a table, as JSON and as CSV, of a running server and of a stopped one.
#[tokio::test]
async fn usage_is_told_on_the_command_line() {
    let serve = serve();
    let dir = serve.data_dir().to_owned();
    let mut daemon = serve.start().await;
    let backend = MockBackend::start(&["m"]).await;
    backend.answer_with(|_| Reply::completion("hi"));
    let worker = lend(&daemon, &backend, 1).await;
    for _ in 0..3 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    }
    has_rows(&daemon, 3).await;
    let (url, dir) = (daemon.url(), dir.display().to_string());
    let running = ["--server", &url, "--data-dir", &dir];
    let run = async |args: &[&str], to: &[&str]| warren(&[&["usage"], args, to].concat()).await;
    let table = run(&["--by", "model,provider"], &running).await;
    assert_eq!(table.code, Some(0), "{table:?}");
    let row: Vec<&str> = table.out.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["m", "lender", "3", "9", "6", "15", "0", "0"], "{table:?}");
    let json = run(&["--by", "key", "--since", "1h", "--json"], &running).await.json();
    assert_eq!(
        (&json["rows"][0]["key"], &json["totals"]["total_tokens"]),
        (&json!("local"), &json!(15))
    );
    assert_eq!(run(&["--until", "1h", "--json"], &running).await.json()["totals"]["requests"], 0);
    assert_eq!(run(&["--since", "soon"], &running).await.code, Some(2));

    drop(worker);
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));
    let csv = run(&["--by", "api", "--csv"], &["--data-dir", &dir]).await;
    let lines: Vec<&str> = csv.out.lines().collect();
    assert_eq!(lines.len(), 2, "{csv:?}");
    assert!(lines[0].starts_with("api,requests,"), "{csv:?}");
    assert!(lines[0].ends_with(",cost,currency"), "{csv:?}");
    assert_eq!(lines[1], "/v1/chat/completions,3,9,6,15,0,0,0.00,USD");
}

/// A query of a consumer's key is not answered, nor one that is not understood.
#[tokio::test]
async fn usage_is_the_operators() {
    let daemon = serve().start().await;
    let (_, key) = make_key(&daemon, json!({})).await;
    assert_eq!(daemon.client().get("/admin/usage").await.status, 401);
    assert_eq!(with_key(&daemon, &key).get("/admin/usage").await.status, 403);
    let bad = daemon.admin().get("/admin/usage?by=week").await;
    assert_eq!(bad.status, 400);
    assert!(bad.text().contains("week"), "{}", bad.text());
    let csv = daemon.admin().get("/admin/usage?by=key&format=csv").await;
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
}

/// While somebody else holds the database, requests are served, health says so, and what was used
/// is written later.
#[tokio::test]
async fn a_locked_database_fails_no_request() {
    let (daemon, path) = started(serve()).await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1).await;
    let other = Connection::open(&path).unwrap();
    other.busy_timeout(DEADLINE).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for _ in 0..5 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    }
    let degraded = async || daemon.health().await["status"] == "degraded";
    eventually("health being degraded", DEADLINE, degraded).await;
    let health = daemon.health().await;
    let why = health["degraded"].as_str().unwrap();
    assert!(why.contains("locked") && health["ok"] == true, "{health}");
    let stranger = daemon.client().request("GET", "/health").header("x-forwarded-for", "10.0.0.1");
    let told = stranger.send().await.json();
    assert!(told["status"] == "degraded" && told.get("degraded").is_none(), "{told}");
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    other.execute_batch("COMMIT").unwrap();
    let well = async || daemon.health().await["status"] == "ok";
    eventually("health being well again", DEADLINE, well).await;
    has_rows(&daemon, 6).await;
}

/// A request that has just ended when the server is asked to stop is written.
#[tokio::test]
async fn a_clean_stop_loses_nothing() {
    let (mut daemon, path) = started(serve()).await;
    let backend = MockBackend::start(&["m"]).await;
    let worker = lend(&daemon, &backend, 8).await;
    let gate = Gate::closed();
    let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    backend.then(Reply::stream([chunk], &gate));
    let streaming = daemon.client().post(CHAT, &ask(true)).start().await;
    let client = daemon.client();
    for _ in 0..50 {
        let post = |_| crate::common::post(&client, CHAT, ask(false));
        for posted in (0..20).map(post).collect::<Vec<_>>() {
            assert_eq!(posted.await.unwrap().status, 200);
        }
    }
    daemon.sigterm();
    gate.open(2);
    assert_eq!(streaming.finish().await.status, 200);
    assert_eq!(daemon.exit().await, Some(0));
    drop(worker);
    let database = Connection::open(&path).unwrap();
    let rows = database.query_row("SELECT COUNT(*) FROM usage", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows.unwrap(), 1_001);
}

#[tokio::test]
async fn old_usage_is_forgotten() {
    let serve = serve().set("--usage-retention-days", "2");
    let dir = serve.data_dir().display().to_string();
    let made = warren(&["key", "create", "--name", "n", "--data-dir", &dir]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let path = serve.data_dir().join("warren.db");
    let database = Connection::open(&path).unwrap();
    let now = jiff::Timestamp::now().as_millisecond();
    for (number, days) in [0, 1, 3, 400].into_iter().enumerate() {
        let at = now - days * 86_400_000;
        let insert =
            "INSERT INTO usage_days VALUES (?1, 'k', 'm', '', '/v1', ?2, 1, 0, 0, 0, 0, 0)";
        database.execute(insert, [at / 86_400_000, number as i64]).unwrap();
        let insert = "INSERT INTO usage_rows (id, job, sums, queue_ms, total_ms, flags)
            VALUES (?1, x'00', ?2, 0, 0, 0)";
        database.execute(insert, [at << 20, number as i64]).unwrap();
    }
    drop(database);
    let daemon = serve.start().await;
    let database = Connection::open(&path).unwrap();
    let kept = async || {
        let count =
            database.query_row("SELECT COUNT(*) FROM usage", [], |row| row.get::<_, i64>(0));
        count.is_ok_and(|count| count == 2)
    };
    eventually("old rows being forgotten", DEADLINE, kept).await;
    join(&daemon, Form::Binary, "w", 1).await.close().await;
}
