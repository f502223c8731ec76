//! Helpers that the tests share: a server, a worker in either form, a request, the shapes of errors.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{
    Client, Connect, DEADLINE, Daemon, FakeWorker, Form, Gate, Job, MockBackend, Reply, Response,
    Serve, Streaming, WorkerProcess, clock::WrongClock, eventually,
};

pub(crate) use testkit::chat::{CHAT, ask as ask_for};

pub(crate) const MESSAGES: &str = "/v1/messages";
pub(crate) const RESPONSES: &str = "/v1/responses";

/// Makes of each function that takes a [`Form`] two tests, one for each.
macro_rules! both_forms {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            #[tokio::test]
            async fn stock() {
                super::$name(testkit::Form::Stock).await;
            }

            #[tokio::test]
            async fn binary() {
                super::$name(testkit::Form::Binary).await;
            }
        }
    )+};
}
pub(crate) use both_forms;

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_warren"))
}

/// A server to be started, with its defaults.
pub(crate) fn serve() -> Serve {
    Serve::new(binary())
}

/// Says why a test does nothing here.
#[expect(clippy::print_stderr, reason = "who reads the tests' output is to know")]
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// A server to be started whose clock is off by this. `None` where nothing can do that.
pub(crate) fn with_clock(by: &str) -> Option<(Serve, WrongClock)> {
    testkit::clock::with_clock(binary(), by)
}

/// A fake worker `name` with the model `m`, which the server has agreed to speak `form` with.
pub(crate) async fn join(daemon: &Daemon, form: Form, name: &str, slots: u32) -> FakeWorker {
    let worker = Connect::to(daemon).form(form).join(name, &["m"], slots).await;
    assert_eq!(worker.form(), form);
    worker
}

/// A server with defaults, and a fake worker `w` at it.
pub(crate) async fn with_worker(form: Form, slots: u32) -> (Daemon, FakeWorker) {
    let daemon = serve().start().await;
    let worker = join(&daemon, form, "w", slots).await;
    (daemon, worker)
}

/// Asks for a stream, and has the worker begin it with `data: 1`.
pub(crate) async fn begin_stream(daemon: &Daemon, worker: &mut FakeWorker) -> (Job, Streaming) {
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, "data: 1\n\n").await;
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    (job, answer)
}

/// Asks for a stream of two events, and has the backend send the first one. The gate holds back
/// the second.
pub(crate) async fn begin_backend_stream(
    daemon: &Daemon,
    backend: &MockBackend,
) -> (Gate, Streaming) {
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    (gate, answer)
}

/// A server with defaults, and a real worker that lends a backend to it.
pub(crate) async fn with_lender(slots: u32) -> (Daemon, MockBackend, WorkerProcess) {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let worker = lend(&daemon, &backend, slots).await;
    (daemon, backend, worker)
}

/// A real worker that lends a backend, once it is connected; it asks for the binary form.
pub(crate) async fn lend(daemon: &Daemon, backend: &MockBackend, slots: u32) -> WorkerProcess {
    let before = daemon.workers().await.len();
    let worker = start_worker(daemon, &backend.url(), slots);
    daemon.has_workers(before + 1).await;
    worker
}

/// A real worker that lends whatever is at `backend` as the model `m`.
pub(crate) fn start_worker(daemon: &Daemon, backend: &str, slots: u32) -> WorkerProcess {
    let slots = slots.to_string();
    let args = ["--models", "m", "--max-concurrent", &slots];
    WorkerProcess::start(binary(), &daemon.url(), backend, "lender", &args)
}

/// A request for the model `m` that works on every API.
pub(crate) fn ask(stream: bool) -> Value {
    ask_for("m", stream)
}

/// Asks for a stream with its usage: nothing is taken out of the answer, so it passes read by read.
pub(crate) fn ask_unfiltered() -> Value {
    let mut ask = ask(true);
    ask["stream_options"] = json!({"include_usage": true});
    ask
}

/// Posts in the background, so that the test can go on meanwhile.
pub(crate) fn post(client: &Client, path: impl Into<String>, body: Value) -> Posted {
    let (client, path) = (client.clone(), path.into());
    tokio::spawn(async move { client.post_json(&path, &body).await })
}

pub(crate) type Posted = tokio::task::JoinHandle<Response>;

/// Checks an OpenAI-style error: its status and its exact words.
#[track_caller]
pub(crate) fn assert_openai_error(response: &Response, status: u16, words: &str) {
    let error = openai_error(response, status);
    assert_eq!(error["message"], words, "{error}");
}

/// Checks the status and the shape of an OpenAI-style error, and returns the error.
#[track_caller]
pub(crate) fn openai_error(response: &Response, status: u16) -> Value {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"));
    let error = response.json()["error"].clone();
    assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
    assert!(error.get("param").is_some() && error.get("code").is_some(), "{error}");
    error
}

/// Checks an Anthropic error: its status, its type and its exact words.
#[track_caller]
pub(crate) fn assert_anthropic_error(response: &Response, status: u16, kind: &str, words: &str) {
    let body = response.json();
    assert_eq!(response.status, status, "{body}");
    assert_eq!(body["type"], "error", "{body}");
    assert_eq!(body["error"]["type"], kind, "{body}");
    assert_eq!(body["error"]["message"], words, "{body}");
}

/// Checks some fields of an object, whatever else it has.
#[track_caller]
pub(crate) fn assert_fields(object: &Value, expected: &Value) {
    for (name, value) in expected.as_object().expect("fields") {
        assert_eq!(&object[name], value, "{name} of {object}");
    }
}

/// Makes a worker hear everything that the server has sent it so far.
pub(crate) async fn catch_up(daemon: &Daemon, worker: &mut FakeWorker) {
    let path = format!("/admin/workers/{}/refresh", worker.id());
    let asked = daemon.admin().post_json(&path, &json!({})).await;
    assert!((200..300).contains(&asked.status), "{}", asked.text());
    worker.expect_message("models_refresh").await;
}

/// Waits until the server has read all that a worker has sent it so far. Shortly after a
/// cancellation a report may count for one less: the cancelled job.
pub(crate) async fn all_read(daemon: &Daemon, worker: &mut FakeWorker) {
    for (load, listed) in [(70, 60..=70), (0, 0..=0)] {
        worker.pong(load).await;
        let reported = async || {
            let workers = daemon.workers().await;
            let of_worker =
                workers.iter().find(|worker_json| worker_json["worker_id"] == worker.id());
            let load = of_worker.and_then(|worker_json| worker_json["reported_load"].as_u64());
            load.is_some_and(|load| listed.contains(&load))
        };
        eventually("a load being listed", DEADLINE, reported).await;
    }
}
