//! Workers and backends that die, hang, or come back.

use std::time::Duration;

use serde_json::json;
use testkit::{Gate, MockBackend, RefusingPort, Reply};

use crate::common::{CHAT, ask, lend, openai_error, post, serve, start_worker};

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
