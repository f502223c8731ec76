//! Requests that wait: for a busy provider, and for the head of their answer.

use std::time::Duration;

use axum::body::Body;
use base::{FactsByModel, LoadState, ModelFacts};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use scheduler::{Assignment, Head};
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};

use crate::kit::{Kit, head, next, text};

const CHAT: &str = "/v1/chat/completions";
const STREAM: &str =
    r#"{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#;
const PLAIN: &str = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#;

fn ask(path: &str, body: &str) -> Request<Body> {
    Request::post(path).body(Body::from(body.to_owned())).unwrap()
}

fn sending(kit: &Kit, path: &str, body: &str) -> JoinHandle<Response<Body>> {
    tokio::spawn(kit.meanwhile(ask(path, body)))
}

/// A kit whose only provider has one slot, and the job that takes it.
async fn busy() -> (Kit, Assignment, JoinHandle<Response<Body>>) {
    let mut kit = Kit::new();
    kit.membership.as_ref().unwrap().capacity(1);
    let first = sending(&kit, CHAT, PLAIN);
    let assignment = kit.assigned().await;
    (kit, assignment, first)
}

async fn frame(body: &mut Body) -> String {
    let frame = next(body).await.unwrap().unwrap();
    String::from_utf8(frame.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_streamed_request_that_waits_is_told_for_whom_and_then_gets_its_answer() {
    let (mut kit, first, _asked) = busy().await;
    let _before = sending(&kit, CHAT, PLAIN);
    tokio::task::yield_now().await;
    let began = Instant::now();
    let response = kit.send(ask(CHAT, STREAM)).await;
    assert_eq!((response.status(), began.elapsed().as_secs()), (StatusCode::OK, 15));
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut body = response.into_body();
    let waiting = ": waiting for m: the worker that serves it is busy, 1 request is in front\n\n";
    assert_eq!(frame(&mut body).await, waiting);
    assert_eq!(began.elapsed().as_secs(), 15, "with the head");
    assert_eq!(frame(&mut body).await, waiting);
    assert_eq!(began.elapsed().as_secs(), 30);
    drop(first);
    drop(kit.assigned().await);
    let mut own = kit.assigned().await;
    assert_eq!(frame(&mut body).await, ": waiting for m: a worker is at it\n\n");
    own.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
    own.answer.chunk(Bytes::from_static(b"data: 1\n\n")).unwrap();
    assert_eq!(frame(&mut body).await, "data: 1\n\n");
    assert_eq!(frame(&mut body).await, ": keep-alive\n\n");
    own.answer.end();
    assert!(next(&mut body).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn each_api_is_kept_waiting_in_its_own_way_and_told_in_its_own_way_that_it_was_in_vain() {
    let busy_words = "the worker that serves it is busy, no request is in front";
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let cases = [
        (CHAT, format!(": waiting for m: {busy_words}\n\n"), "data: {\"error\":{"),
        ("/v1/messages", format!(": waiting for m: {busy_words}\n{ping}"), "event: error\ndata: {"),
        ("/api/chat", "\n".to_owned(), "{\"err\":\"timeout waiting for node\""),
        ("/api/generate", " ".to_owned(), "{\"error\":\"queue timeout"),
    ];
    for (path, sign, error) in cases {
        let (kit, mut first, _asked) = busy().await;
        let body = match path {
            "/api/chat" => STREAM.replacen('{', "{\"max_new_tokens\":7,", 1),
            "/api/generate" => r#"{"model":"m","prompt":"hi"}"#.to_owned(),
            _ => STREAM.to_owned(),
        };
        let response = kit.send(ask(path, &body)).await;
        first.answer.head(head(&[])).unwrap();
        let mut body = response.into_body();
        for _ in 0..3 {
            assert_eq!(frame(&mut body).await, sign, "{path}");
        }
        // Its answer goes on for longer than the other one waits.
        let last = loop {
            let _ = first.answer.chunk(Bytes::from_static(b" "));
            let text = frame(&mut body).await;
            if text != sign {
                break text;
            }
        };
        assert!(last.starts_with(error) && last.contains("waited 600 s for m: "), "{last}");
        assert!(next(&mut body).await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_request_gets_nothing_before_its_true_status() {
    let (kit, mut first, _asked) = busy().await;
    first.answer.head(head(&[])).unwrap();
    let waiting = sending(&kit, CHAT, PLAIN);
    for _ in 0..599 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        first.answer.chunk(Bytes::from_static(b" ")).unwrap();
    }
    assert!(!waiting.is_finished());
    let response = waiting.await.unwrap();
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(
        (&error["error"]["code"], &error["error"]["type"]),
        (&"busy_timeout".into(), &"timeout_error".into())
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_provider_the_status_is_true() {
    let mut kit = Kit::new();
    let pending = sending(&kit, CHAT, STREAM);
    kit.assigned().await.answer.decline();
    let began = Instant::now();
    let response = pending.await.unwrap();
    assert_eq!((response.status(), began.elapsed().as_secs()), (StatusCode::GATEWAY_TIMEOUT, 30));
    let error: Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(error["error"]["code"], "queue_timeout");
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_without_a_provider_gets_signs_of_life_too() {
    let mut kit = Kit::with(|_, limits| limits.keepalive = Duration::from_secs(5));
    let pending = sending(&kit, CHAT, STREAM);
    kit.assigned().await.answer.decline();
    let began = Instant::now();
    let response = pending.await.unwrap();
    assert_eq!((response.status(), began.elapsed().as_secs()), (StatusCode::OK, 15));
    let mut body = response.into_body();
    let sign = ": waiting for m: no worker that serves it is connected\n\n";
    assert_eq!(frame(&mut body).await, sign);
    assert_eq!(frame(&mut body).await, sign);
    assert_eq!(began.elapsed().as_secs(), 20);
}

/// The answer to a client after a sign of life, for an answer with this head and body.
async fn late(path: &str, answer: Head, body: &'static str) -> String {
    let mut kit = Kit::new();
    let response = sending(&kit, path, STREAM);
    let mut assignment = kit.assigned().await;
    let mut read = response.await.unwrap().into_body();
    assert!(frame(&mut read).await.contains("a worker is at it"));
    assignment.answer.head(answer).unwrap();
    assignment.answer.chunk(Bytes::from_static(body.as_bytes())).unwrap();
    assignment.answer.end();
    let last = frame(&mut read).await;
    assert!(next(&mut read).await.is_none());
    last
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_head_is_an_error_event() {
    let json = || head(&[("content-type", "application/json")]);
    let bad = || Head { status: StatusCode::BAD_REQUEST, ..json() };
    let body = r#"{"error":{"message":"too long","param":"messages"}}"#;
    let chat = late(CHAT, bad(), body).await;
    let error: Value = serde_json::from_str(chat.strip_prefix("data: ").unwrap()).unwrap();
    let fields = ["message", "type", "param"].map(|field| error["error"][field].as_str().unwrap());
    assert_eq!(fields, ["too long", "invalid_request_error", "messages"]);
    let messages = late("/v1/messages", bad(), body).await;
    assert!(messages.starts_with("event: error\ndata: {") && messages.contains("too long"));
    let whole = late(CHAT, json(), r#"{"choices":[]}"#).await;
    assert!(whole.contains("not the stream that was asked for"), "{whole}");
    let typeless = late(CHAT, head(&[]), "data: 1\n\n").await;
    assert_eq!(typeless, "data: 1\n\n", "a stream all the same");
}

#[tokio::test(start_paused = true)]
async fn a_job_still_moves_after_the_early_head() {
    let mut kit = Kit::new();
    let _other = kit.join(2, &["m"], &[base::Endpoint::ChatCompletions]);
    let response = sending(&kit, CHAT, STREAM);
    let mut first = kit.assigned().await;
    let mut body = response.await.unwrap().into_body();
    frame(&mut body).await;
    let failed = Head { status: StatusCode::INTERNAL_SERVER_ERROR, ..head(&[]) };
    assert!(first.answer.head(failed).is_err());
    first.answer.fail("it refused");
    let mut second = kit.assigned().await;
    second.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
    second.answer.chunk(Bytes::from_static(b"data: 1\n\n")).unwrap();
    assert_eq!(frame(&mut body).await, "data: 1\n\n");
}

#[tokio::test(start_paused = true)]
async fn no_early_head_for_another_server_nor_when_it_is_off_nor_where_there_are_no_streams() {
    let mut off = Kit::with(|_, limits| limits.keepalive = Duration::ZERO);
    let mut on = Kit::new();
    let mut passed_on = ask(CHAT, STREAM);
    passed_on.headers_mut().insert("x-warren-via", "0123456789abcdef".parse().unwrap());
    let embeddings = ask("/v1/embeddings", r#"{"model":"m","stream":true,"input":"a"}"#);
    for (kit, request) in [(&mut off, ask(CHAT, STREAM)), (&mut on, passed_on)] {
        waits_for_its_head(kit, request).await;
    }
    waits_for_its_head(&mut on, embeddings).await;
}

async fn waits_for_its_head(kit: &mut Kit, request: Request<Body>) {
    let response = tokio::spawn(kit.meanwhile(request));
    let mut assignment = kit.assigned().await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let refused = Head { status: StatusCode::BAD_REQUEST, ..head(&[]) };
    assignment.answer.head(refused).unwrap();
    assignment.answer.end();
    assert_eq!(response.await.unwrap().status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_body_takes_its_memory_until_the_providers_own_head() {
    let mut kit = Kit::with(|_, limits| limits.bodies = 4 * 1024);
    let long = STREAM.replace("\"a\"}", &format!("\"{}\"}}", "a".repeat(3_000)));
    let response = sending(&kit, CHAT, &long);
    let mut first = kit.assigned().await;
    let mut body = response.await.unwrap().into_body();
    frame(&mut body).await;
    let refused = kit.send(ask(CHAT, &long)).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    first.answer.head(head(&[("content-type", "text/event-stream")])).unwrap();
    first.answer.chunk(Bytes::from_static(b"data: 1\n\n")).unwrap();
    while frame(&mut body).await != "data: 1\n\n" {}
    let _second = sending(&kit, CHAT, &long);
    kit.assigned().await;
}

/// A line break in a name would end the comment, and begin a line of the stream.
#[tokio::test(start_paused = true)]
async fn a_name_cannot_add_an_event() {
    let mut kit = Kit::new();
    let _other = kit.join(2, &["m\ndata: x"], &[base::Endpoint::ChatCompletions]);
    let response = sending(&kit, CHAT, r#"{"model":"m\ndata: x","stream":true,"messages":[]}"#);
    let _assignment = kit.assigned().await;
    let sign = frame(&mut response.await.unwrap().into_body()).await;
    assert_eq!(sign.lines().count(), 2, "{sign}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_it_waits_is_gone() {
    let (kit, _first, _asked) = busy().await;
    let response = kit.send(ask(CHAT, STREAM)).await;
    assert_eq!(kit.scheduler.status().queue_depth, 1);
    drop(response);
    assert_eq!(kit.scheduler.status().queue_depth, 0);
}

#[tokio::test(start_paused = true)]
async fn a_busy_worker_is_not_waited_for_to_count_tokens() {
    let (kit, _first, _asked) = busy().await;
    let began = Instant::now();
    let response = kit.send(ask("/v1/messages/count_tokens", PLAIN)).await;
    assert_eq!(response.headers()["x-warren-usage"], "estimated");
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(kit.scheduler.status().queue_depth, 0);
}

/// The facts that the only provider reports of its model.
fn facts(load: LoadState, seconds: u64) -> FactsByModel {
    let load_ms = Some(seconds * 1_000);
    let facts = ModelFacts { load: Some(load), load_ms, ..ModelFacts::default() };
    FactsByModel::from([("m".to_owned(), facts)])
}

#[tokio::test(start_paused = true)]
async fn a_streamed_request_is_told_that_its_model_is_being_loaded() {
    let mut kit = Kit::new();
    let membership = kit.membership.take().unwrap();
    membership.memory(&facts(LoadState::Unloaded, 40));
    let (response, _given) = tokio::join!(kit.meanwhile(ask(CHAT, STREAM)), kit.assigned());
    let mut body = response.into_body();
    let words = |left| format!(": waiting for m: the model is being loaded on test{left}\n\n");
    assert_eq!(frame(&mut body).await, words(", about 25 s more"));
    membership.memory(&facts(LoadState::Loading, 40));
    assert_eq!(frame(&mut body).await, words(", about 10 s more"));
    assert_eq!(frame(&mut body).await, words(", for longer than before"));
    let unknown = ModelFacts { load: Some(LoadState::Loading), ..ModelFacts::default() };
    membership.memory(&FactsByModel::from([("m".to_owned(), unknown)]));
    assert_eq!(frame(&mut body).await, words(""));
    membership.memory(&FactsByModel::new());
    assert_eq!(frame(&mut body).await, ": waiting for m: a worker is at it\n\n");
}

#[tokio::test(start_paused = true)]
async fn strangers_are_not_told_which_machine_loads_a_model_and_no_figure_is_endless() {
    let mut kit = Kit::with(|rules, _| rules.open = true);
    let membership = kit.membership.take().unwrap();
    membership.memory(&facts(LoadState::Unloaded, u64::MAX / 1_000));
    let (response, _given) = tokio::join!(kit.meanwhile(ask(CHAT, STREAM)), kit.assigned());
    let words = frame(&mut response.into_body()).await;
    let loading = "the model is being loaded on a worker, about 3585 s more";
    assert_eq!(words, format!(": waiting for m: {loading}\n\n"));
}
