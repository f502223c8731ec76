//! Workers and backends that die, hang, or come back.

use std::time::Duration;

use serde_json::json;
use testkit::{DEADLINE, Gate, MockBackend, RefusingPort, Reply, WorkerProcess, eventually};

use crate::common::{
    CHAT, ask, ask_for, begin_backend_stream, binary, lend, openai_error, post, serve,
    start_worker, with_lender,
};

/// It is waited for as a worker that is away, and the error says what is missing, but not where.
#[tokio::test]
async fn a_backend_that_refuses_for_too_long_is_a_504() {
    let daemon = serve().set("--queue-timeout-secs", "0.8").start().await;
    let nowhere = RefusingPort::take();
    let worker = start_worker(&daemon, &nowhere.url(), 1);
    daemon.has_workers(1).await;
    for stream in [false, true] {
        let answer = daemon.client().post_json(CHAT, &ask(stream)).await;
        let error = openai_error(&answer, 504);
        assert_eq!(error["code"], "queue_timeout");
        let words = error["message"].as_str().unwrap();
        assert!(words.contains("its model server cannot be reached"), "{words}");
        assert!(!words.contains("127.0.0.1"), "{words}");
    }
    assert!(worker.log().contains(&nowhere.url()), "the worker's log says where");
    daemon.is_idle().await;
}

/// A restart, and then the time in which the model is read.
#[tokio::test]
async fn a_backend_that_restarts_and_loads_is_waited_for() {
    let daemon = serve().start().await;
    let nowhere = RefusingPort::take();
    let address = nowhere.address();
    let worker = start_worker(&daemon, &nowhere.url(), 1);
    daemon.has_workers(1).await;
    let plain = post(&daemon.client(), CHAT, ask(false));
    let stream = post(&daemon.client(), CHAT, ask(true));
    worker.line_with("could not connect").await;
    drop(nowhere);
    let backend = MockBackend::start_at(address, &["m"]).await;
    let loading = json!({"error": {"code": 503, "message": "Loading model"}});
    backend.then(Reply::json(503, &loading));
    backend.then(Reply::json(503, &loading));
    for answer in [plain, stream] {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    daemon.is_idle().await;
}

/// Its worker has the model no more. Nobody waits for it.
#[tokio::test]
async fn a_model_that_was_removed_is_a_404_at_once() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m", "n"]).await;
    let worker = WorkerProcess::start(binary(), &daemon.url(), &backend.url(), "lender", &[]);
    daemon.has_workers(1).await;
    let id = daemon.workers().await[0]["worker_id"].as_str().unwrap().to_owned();
    let changed = async |models: &[&str]| {
        backend.set_models(models);
        daemon.admin().post_json(&format!("/admin/workers/{id}/refresh"), &json!({})).await;
    };
    let served = async |model: &str| {
        let models = daemon.client().get("/v1/models").await.json();
        models["data"].as_array().unwrap().iter().any(|listed| listed["id"] == model)
    };
    eventually("both are listed", DEADLINE, async || served("n").await).await;
    changed(&["m"]).await;
    eventually("one is removed", DEADLINE, async || !served("n").await).await;
    let error = openai_error(&daemon.client().post_json(CHAT, &ask_for("n", true)).await, 404);
    assert_eq!(error["code"], "model_not_found");
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("it was last seen at lender and is gone"), "{words}");
    // So is the last one, and one that comes again is there again.
    changed(&[]).await;
    eventually("none is left", DEADLINE, async || !served("m").await).await;
    openai_error(&daemon.client().post_json(CHAT, &ask_for("m", false)).await, 404);
    changed(&["m"]).await;
    eventually("it is back", DEADLINE, async || served("m").await).await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    drop(worker);
    daemon.has_workers(0).await;
    let waits = post(&daemon.client(), CHAT, ask(false));
    daemon.has_queued(1).await;
    waits.abort();
}

/// A laptop falls asleep: a request that it was given goes to the other machine, long before its link
/// is given up.
#[tokio::test]
async fn a_request_at_a_worker_that_sleeps_moves_on() {
    let daemon = serve().start().await;
    let backends = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    let sleeper = lend(&daemon, &backends[0], 1).await;
    let _other = lend(&daemon, &backends[1], 1).await;
    sleeper.sigstop();
    let began = std::time::Instant::now();
    let both = [ask(false), ask(true)].map(|body| post(&daemon.client(), CHAT, body));
    for answer in both {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    daemon.has_workers(2).await;
    sleeper.sigcont();
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_killed_worker_ends_a_stream_that_has_begun() {
    let (daemon, backend, mut worker) = with_lender(1).await;
    let other_backend = MockBackend::start(&["m"]).await;
    let (_gate, answer) = begin_backend_stream(&daemon, &backend).await;
    let _other = lend(&daemon, &other_backend, 1).await;
    worker.kill9().await;
    let rest = answer.finish().await.text();
    assert!(rest.starts_with("data: {\"error\":") && rest.ends_with("\n\n"), "{rest}");
    assert!(!rest.contains("[DONE]"), "{rest}");
    backend.aborted(1).await;
    assert_eq!(other_backend.counts().started, 0, "a stream that has begun is never retried");
    daemon.is_idle().await;
}

#[tokio::test]
async fn workers_come_back_to_a_server_that_was_killed() {
    let mut daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let gate = Gate::closed();
    let _first = lend(&daemon, &backend, 1).await;
    let _second = lend(&daemon, &backend, 1).await;
    backend.then(Reply::completion("late").after(&gate));
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    backend.request().await;
    daemon.kill_and_restart().await;
    assert!(asked.try_answer().await.is_err(), "its server was killed");
    backend.aborted(1).await;
    daemon.has_workers(2).await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    daemon.is_idle().await;
}

/// A worker may start before its server does, and keeps trying.
#[tokio::test]
async fn a_worker_waits_for_its_server() {
    let port = RefusingPort::take();
    let backend = MockBackend::start(&["m"]).await;
    let args = ["--models", "m"];
    let mut worker = WorkerProcess::start(binary(), &port.url(), &backend.url(), "early", &args);
    let tried = async || !worker.log().is_empty();
    eventually("the worker saying that nobody answers", Duration::from_secs(10), tried).await;
    let address = port.address().to_string();
    drop(port);
    let daemon = serve().listen(&address).start().await;
    daemon.has_workers(1).await;
    assert!(worker.check_running());
}

/// A silence between chunks longer than the idle time-out ends the stream and aborts the backend.
#[tokio::test]
async fn a_stream_that_falls_silent_is_ended() {
    let daemon = serve().set("--idle-timeout-secs", "0.3").start().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1).await;
    backend.then(Reply::stream(["data: 1\n\n"], &Gate::opened()).stalled());
    let answer = daemon.client().post_json(CHAT, &ask(true)).await.text();
    assert!(answer.starts_with("data: 1\n\ndata: {\"error\":"), "{answer}");
    backend.aborted(1).await;
    daemon.is_idle().await;
}
