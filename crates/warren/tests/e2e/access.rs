//! Access: keys, local requests, foreign pages.

use serde_json::json;
use testkit::{Client, Connect, Daemon, Form, daemon::WORKER_SECRET};

use crate::common::{CHAT, MESSAGES, ask, join, lend, openai_error, serve};

#[tokio::test]
async fn a_worker_without_the_secret_is_refused_before_the_upgrade() {
    let daemon = serve().set("--client-token", "key-1").start().await;
    let connects = [
        Connect::new(daemon.address()),
        Connect::new(daemon.address()).header("x-worker-secret", "wrong"),
        Connect::new(daemon.address()).header("x-worker-secret", ""),
        Connect::new(daemon.address()).query("worker_secret=wrong"),
        // A client's key is no worker's secret: a worker is shown other people's prompts.
        Connect::new(daemon.address()).header("authorization", "Bearer key-1"),
        Connect::new(daemon.address()).header("x-worker-secret", "key-1"),
    ];
    for connect in connects {
        let refused = connect.open().await.expect_err("it must not be let in");
        assert_eq!(refused.status, 401);
    }
    assert_eq!(daemon.workers().await.len(), 0);
    assert_never_logged(daemon, "key-1").await;
}

/// Ends the server, so that its log is whole, and looks for what must not be in it.
async fn assert_never_logged(mut daemon: Daemon, secret: &str) {
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));
    assert!(!daemon.log().contains(secret), "a secret is in the log:\n{}", daemon.log());
}

#[tokio::test]
async fn the_secret_in_the_query_is_not_logged() {
    let daemon = serve().set("--log", "trace").start().await;
    let query = format!("worker_secret={WORKER_SECRET}");
    Connect::new(daemon.address()).query(&query).join("w", &["m"], 1).await.close().await;
    daemon.has_workers(0).await;
    assert_never_logged(daemon, WORKER_SECRET).await;
}

#[tokio::test]
async fn a_plain_get_of_the_worker_path_is_told_what_it_is() {
    let daemon = serve().start().await;
    let request = daemon.client().request("GET", "/v1/worker/connect");
    let answer = request.header("x-worker-secret", WORKER_SECRET).send().await;
    assert_eq!((answer.status, answer.header("upgrade")), (426, Some("websocket")));
}

/// Requests that only look local, each by one trait.
const NOT_LOCAL: [(&str, &str); 7] = [
    ("host", "evil.example"),
    ("origin", "https://evil.example"),
    ("x-forwarded-for", "10.0.0.1"),
    ("x-forwarded-proto", "https"),
    ("forwarded", "for=10.0.0.1"),
    ("x-real-ip", "10.0.0.1"),
    ("via", "1.1 proxy"),
];

#[tokio::test]
async fn a_request_that_is_not_local_needs_a_key() {
    let daemon = serve().set("--client-token", "key-1").start().await;
    let mut worker = join(&daemon, Form::Stock, "w", 1).await;
    for (name, value) in NOT_LOCAL {
        let request = daemon.client().post(CHAT, &ask(false)).header(name, value);
        // Only of these two it is said what would allow them.
        let status = if matches!(name, "host" | "origin") { 403 } else { 401 };
        openai_error(&request.clone().send().await, status);
        let wrong = request.clone().header("authorization", "Bearer wrong");
        openai_error(&wrong.send().await, status);
        for (credential, text) in [("authorization", "Bearer key-1"), ("x-api-key", "key-1")] {
            let answer = tokio::spawn(request.clone().header(credential, text).send());
            let job = worker.expect_job().await;
            worker.complete(&job, 200, &json!({})).await;
            assert_eq!(answer.await.unwrap().status, 200, "{name} with {credential}");
        }
        let models = daemon.client().request("GET", "/v1/models").header(name, value);
        assert_eq!(models.clone().send().await.status, status, "{name}");
        let keyed = models.header("authorization", "Bearer key-1").send().await;
        assert_eq!(keyed.status, 200, "{name}");
    }
}

#[tokio::test]
async fn hosts_and_origins_can_be_allowed() {
    let daemon = serve()
        .set("--allow-host", "gpu.lan")
        .set("--allow-origin", "https://app.example")
        .start()
        .await;
    let models = daemon.client().request("GET", "/v1/models");
    let allowed = models.clone().header("host", "gpu.lan").header("origin", "https://app.example");
    assert_eq!(allowed.send().await.status, 200);
    assert_eq!(models.clone().header("host", "gpu.lan:9178").send().await.status, 200);
    let own = format!("http://{}", daemon.address());
    assert_eq!(models.header("origin", &own).send().await.status, 200);
}

#[tokio::test]
async fn local_requests_need_a_key_when_told_so() {
    let daemon = serve().flag("--require-key").set("--client-token", "key-1").start().await;
    openai_error(&daemon.client().post_json(CHAT, &ask(false)).await, 401);
    let refused = daemon.client().post_json(MESSAGES, &ask(false)).await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["error"]["type"], "authentication_error");
    let keyed = daemon.client().with_header("x-api-key", "key-1");
    openai_error(&keyed.post_json(CHAT, &ask(false)).await, 404);
}

/// Health tells strangers that it is well, and nothing more.
#[tokio::test]
async fn health_is_short_for_strangers() {
    let daemon = serve().set("--client-token", "key-1").start().await;
    let _worker = join(&daemon, Form::Stock, "w", 1).await;
    let health = daemon.client().request("GET", "/health").header("x-forwarded-for", "10.0.0.1");
    let short = health.clone().send().await;
    assert_eq!((short.status, &short.json()["status"]), (200, &json!("ok")));
    assert_eq!(short.json().get("models"), None);
    assert_eq!(short.json().get("workers"), None);
    let long = health.header("authorization", "Bearer key-1").send().await.json();
    assert!(long.get("models").is_some() && long.get("workers").is_some(), "{long}");
    let metrics = daemon.client().request("GET", "/metrics").header("x-forwarded-for", "10.0.0.1");
    assert_eq!(metrics.send().await.status, 401);
}

/// Beyond loopback, a server without credentials does not start.
#[tokio::test]
async fn beyond_loopback_credentials_must_be_set() {
    for addressed in ["0.0.0.0:0", "[::]:0"] {
        let serve = serve().bare().listen(addressed);
        let mut process = serve.spawn();
        let code = process.exit().await;
        let log = process.log();
        assert!(matches!(code, Some(1 | 2)), "{code:?}: {log}");
        assert!(log.contains("--client-token") || log.contains("--open"), "{log}");
        assert!(!log.contains("listening on"), "{log}");
    }
}

#[tokio::test]
async fn beyond_loopback_it_starts_with_credentials() {
    let serve = serve().set("--client-token", "key-1").listen("0.0.0.0:0");
    let daemon: Daemon = serve.start().await;
    let here = format!("127.0.0.1:{}", daemon.address().port()).parse().unwrap();
    let answer = Client::new(here).with_token("key-1").get("/v1/models").await;
    assert_eq!(answer.status, 200);
}

/// Without keys at all only when told so, and then it says what that means.
#[tokio::test]
async fn beyond_loopback_it_can_be_open() {
    let daemon = serve().flag("--open").listen("0.0.0.0:0").start().await;
    let here = format!("127.0.0.1:{}", daemon.address().port()).parse().unwrap();
    let models = Client::new(here).request("GET", "/v1/models").header("host", "evil.example");
    assert_eq!(models.send().await.status, 200);
    daemon.line_with("WARN").await;
    // Open to consumers, not to workers and administrators.
    let refused = Connect::new(here).open().await.expect_err("it must not be let in");
    assert_eq!(refused.status, 401);
    assert_eq!(Client::new(here).get("/admin/workers").await.status, 401);
}

/// The admin token is a secret of 256 bits that only its owner can read, and it stays.
#[tokio::test]
async fn the_admin_token_is_kept() {
    use std::os::unix::fs::PermissionsExt;

    let serve = serve();
    let path = serve.data_dir().join("admin.token");
    let mut daemon = serve.start().await;
    let token = std::fs::read_to_string(&path).unwrap();
    assert!(token.trim().len() >= 43, "{} characters", token.trim().len());
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    daemon.stop_and_restart().await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), token);
    assert_never_logged(daemon, token.trim()).await;
}

/// A real worker with the wrong secret says so, and keeps trying.
#[tokio::test]
async fn a_real_worker_says_that_its_secret_is_wrong() {
    let daemon = serve().start().await;
    let backend = testkit::MockBackend::start(&["m"]).await;
    let (server, lent) = (daemon.url(), backend.url());
    let args = ["worker", "--server", &server, "--secret", "not-the-one", "--backend", &lent];
    let args = [&args[..], &["--models", "m", "--name", "w"]].concat();
    let mut worker = testkit::ChildProcess::start("worker", crate::common::binary(), &args);
    worker.line_with("secret").await;
    assert!(worker.check_running());
    assert!(!worker.log().contains("not-the-one"), "the secret is in the log");
    let _good = lend(&daemon, &backend, 1).await;
}
