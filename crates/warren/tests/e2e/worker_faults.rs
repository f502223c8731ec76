//! Workers and backends that die, hang, or come back.

use std::time::Duration;

use serde_json::json;
use testkit::{
    DEADLINE, Form, Gate, MockBackend, RefusingPort, Reply, WorkerProcess, backend::Step,
    eventually,
};

use crate::common::{
    CHAT, ask, ask_for, assert_openai_error, begin_backend_stream, binary, both_forms, join, lend,
    openai_error, post, serve, start_worker, with_lender, with_worker,
};

both_forms!(a_failure_before_the_answer_goes_elsewhere, a_failure_with_nobody_else_is_a_502);

async fn a_failure_before_the_answer_goes_elsewhere(form: Form) {
    let daemon = serve().start().await;
    let mut failing = join(&daemon, form, "failing", 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    let job = failing.expect_job().await;
    let mut other = join(&daemon, form, "other", 1).await;
    failing.fail(&job, "backend_unreachable", "nobody is at home").await;
    let moved = other.expect_job().await;
    other.complete(&moved, 200, &json!({"by": "other"})).await;
    assert_eq!(answer.await.unwrap().json(), json!({"by": "other"}));
    // Its failure was the job's, not the link's.
    assert_eq!(daemon.workers().await.len(), 2);
}

async fn a_failure_with_nobody_else_is_a_502(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(true));
    let job = worker.expect_job().await;
    worker.fail(&job, "backend_broke", "it is out of memory").await;
    openai_error(&answer.await.unwrap(), 502);
    daemon.is_idle().await;
    let next = post(&daemon.client(), CHAT, ask(false));
    let job = worker.expect_job().await;
    worker.complete(&job, 200, &json!({})).await;
    assert_eq!(next.await.unwrap().status, 200);
}

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
async fn a_backend_that_refuses_is_passed_over() {
    let daemon = serve().start().await;
    let nowhere = RefusingPort::take();
    let _refusing = start_worker(&daemon, &nowhere.url(), 4);
    daemon.has_workers(1).await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 4).await;
    for _ in 0..10 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    }
}

#[tokio::test]
async fn a_backend_that_closes_without_an_answer_is_a_502() {
    let (daemon, backend, _worker) = with_lender(1).await;
    backend.answer_with(|_| Reply::steps([Step::Reset]));
    openai_error(&daemon.client().post_json(CHAT, &ask(false)).await, 502);
    backend.answer_with(|_| Reply::raw("this is not HTTP\r\n\r\n"));
    openai_error(&daemon.client().post_json(CHAT, &ask(true)).await, 502);
    backend.answer_with(|_| Reply::completion("well again"));
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    daemon.is_idle().await;
}

/// One job's backend that dies does nothing to the others on the same link.
#[tokio::test]
async fn a_backend_that_dies_mid_stream_ends_that_stream_only() {
    let (daemon, backend, _worker) = with_lender(2).await;
    let (dying, living) = (Gate::closed(), Gate::closed());
    backend.then(Reply::stream(["data: 1\n\n"], &dying).broken());
    let first = daemon.client().post(CHAT, &ask(true)).open().await;
    backend.request().await;
    backend.then(Reply::stream(["data: a\n\n", "data: b\n\n"], &living));
    let second = daemon.client().post(CHAT, &ask(true)).open().await;
    backend.request().await;
    living.open(1);
    let mut second = second.answer().await;
    second.expect("data: a\n\n").await;
    dying.open(2);
    let first = first.answer().await.finish().await;
    assert!(first.text().starts_with("data: 1\n\ndata: {\"error\":"), "{}", first.text());
    living.open(2);
    assert_eq!(second.finish().await.text(), "data: b\n\n");
    daemon.is_idle().await;
    assert_eq!(daemon.workers().await.len(), 1);
}

/// A frozen worker is as good as lost: its request goes to another.
#[tokio::test]
async fn a_stopped_worker_loses_its_request_to_another() {
    let daemon = serve().set("--heartbeat-interval-secs", "0.2").start().await;
    let frozen = MockBackend::start(&["m"]).await;
    frozen.answer_with(|_| Reply::hang());
    let stopped = lend(&daemon, &frozen, 1).await;
    let answer = post(&daemon.client(), CHAT, ask(false));
    frozen.request().await;
    stopped.sigstop();
    let backend = MockBackend::start(&["m"]).await;
    let _other = start_worker(&daemon, &backend.url(), 1);
    assert_eq!(answer.await.unwrap().status, 200);
    daemon.has_workers(1).await;
    stopped.sigcont();
    daemon.has_workers(2).await;
    frozen.aborted(1).await;
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

/// A frozen worker's stream that has begun is ended.
#[tokio::test]
async fn a_stopped_worker_ends_a_stream_that_has_begun() {
    let daemon = serve().set("--heartbeat-interval-secs", "0.2").start().await;
    let backend = MockBackend::start(&["m"]).await;
    let worker = lend(&daemon, &backend, 1).await;
    let (_gate, answer) = begin_backend_stream(&daemon, &backend).await;
    worker.sigstop();
    let rest = answer.finish().await.text();
    assert!(rest.starts_with("data: {\"error\":"), "{rest}");
    worker.sigcont();
    backend.aborted(1).await;
    daemon.has_workers(1).await;
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

/// Three faults of its own in a row let a worker rest while there is another.
#[tokio::test]
async fn a_faulty_worker_rests_while_another_is_there() {
    let daemon = serve().start().await;
    let faulty = MockBackend::start(&["m"]).await;
    faulty.answer_with(|_| Reply::json(500, &json!({"error": {"message": "out of memory"}})));
    let _faulty = lend(&daemon, &faulty, 1).await;
    // Alone, it is never left out.
    for _ in 0..4 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 500);
    }
    let well = MockBackend::start(&["m"]).await;
    let _well = lend(&daemon, &well, 1).await;
    for _ in 0..6 {
        assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    }
    assert_eq!(faulty.counts().started, 4);
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

/// The same before the first byte, where the status can still tell it.
#[tokio::test]
async fn a_head_without_a_body_falls_silent_too() {
    let daemon = serve().set("--idle-timeout-secs", "0.3").start().await;
    let mut worker = join(&daemon, Form::Binary, "w", 1).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.begin(&job, 200, &[("content-type", "text/event-stream")]).await;
    assert_eq!(worker.expect_cancel().await, (job.request_id, json!("timeout")));
    let answer = asked.answer().await.finish().await;
    assert!(answer.text().starts_with("data: {\"error\":"), "{}", answer.text());
    daemon.is_idle().await;
    assert_openai_error(
        &daemon.client().post_json(CHAT, &ask_for("x", true)).await,
        404,
        "no provider for model x",
    );
}
