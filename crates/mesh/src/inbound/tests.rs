//! Requests of peers, with the peers and the backends played by hand.

use std::{sync::Arc, time::Duration};

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::StatusCode;
use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{ErrorCode, InferenceError, InferenceRequest, decode},
};
use scheduler::{Assignment, Head};
use serde_json::{Value, json};
use store::{UsageEntry, UsageStore, VolatileStore};
use tokio_util::task::TaskTracker;

use super::{Inbound, MAX_RUNNING};
use crate::{
    link::Link,
    share::{MachineLoad, Moment, Share, Sharing},
    testing::{FarEnd, Kind, Lent, Server, id, link, marks, mesh, ok, peer, settings},
};

const DELTA: &str =
    r#"{"model":"secret","choices":[{"index":0,"delta":{"content":"é"},"finish_reason":null}]}"#;
const LAST: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;

struct Bench {
    server: Server,
    inbound: Inbound,
    store: Arc<VolatileStore>,
    tasks: TaskTracker,
}

impl Bench {
    fn new(share: Share) -> Self {
        let (server, store) = (Server::new(), Arc::new(VolatileStore::default()));
        let usage: Arc<dyn UsageStore> = Arc::<VolatileStore>::clone(&store);
        let inbound = Inbound::new(share, server.scheduler.clone(), usage, marks());
        Self { server, inbound, store, tasks: TaskTracker::new() }
    }

    fn take(&self, link: &Arc<Link>, request: InferenceRequest) {
        let load = || MachineLoad { own_load: 0.0, throttle: 100 };
        self.inbound.take(&self.tasks, link, link.proved, request, load);
    }

    /// A peer asks for a model, as stock peers do.
    fn ask(&self, link: &Arc<Link>, id: &str, model: &str) {
        self.take(link, request(id, &json!({"model": model, "messages": [], "seed": 7})));
    }
}

fn shared() -> Share {
    Share { with: Sharing::Peers, ..Share::default() }
}

fn request(id: &str, body: &Value) -> InferenceRequest {
    let message =
        json!({"inferenceRequest": {"_0": {"requestID": id, "request": body, "streaming": false}}});
    match decode(message.to_string().as_bytes()).unwrap().message {
        ClusterMessage::InferenceRequest(request) => request,
        other => panic!("{other:?}"),
    }
}

fn says(assignment: &mut Assignment, chunk: &str) {
    assignment.answer.chunk(format!("data: {chunk}\n\n").into()).unwrap();
}

async fn chunk(far: &mut FarEnd) -> Value {
    match far.hears().await.0 {
        ClusterMessage::InferenceChunk(chunk) => serde_json::from_str(chunk.chunk.get()).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn error(far: &mut FarEnd) -> InferenceError {
    match far.hears().await.0 {
        ClusterMessage::InferenceError(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A peer asks for `m`, which a backend begins to answer.
async fn begun(bench: &mut Bench, kind: Kind) -> (Arc<Link>, FarEnd, Lent, Assignment) {
    let mut lent = bench.server.lend(&["m"], 1);
    let (link, mut far) = link(&id(1), kind);
    bench.ask(&link, "A", "m");
    let mut assignment = lent.assigned().await;
    assignment.answer.head(ok()).unwrap();
    says(&mut assignment, DELTA);
    chunk(&mut far).await;
    (link, far, lent, assignment)
}

#[tokio::test(start_paused = true)]
async fn a_stock_peer_is_answered_in_its_own_form() {
    let mut bench = Bench::new(shared());
    let mut lent = bench.server.lend(&["org/M"], 1);
    let (link, mut far) = link(&id(1), Kind::StockNear);
    bench.ask(&link, "AB-1", "m");
    let mut assignment = lent.assigned().await;
    let sent: Value = serde_json::from_slice(&assignment.request.body).unwrap();
    assert_eq!(
        (&sent["model"], &sent["stream"], &sent["seed"]),
        (&json!("org/M"), &json!(true), &json!(7))
    );
    assert_eq!(assignment.request.headers["x-warren-route"], "local-only");
    assignment.answer.head(ok()).unwrap();
    says(&mut assignment, DELTA);
    let (message, dialect) = far.hears().await;
    let ClusterMessage::InferenceChunk(first) = message else { panic!("{message:?}") };
    assert_eq!((first.request_id.as_str(), dialect), ("AB-1", Dialect::Wrapped));
    assert_eq!(
        first.chunk.get(),
        DELTA.replace("secret", "m"),
        "all but the model's name as it is"
    );
    says(&mut assignment, LAST);
    says(&mut assignment, USAGE);
    assignment.answer.end();
    assert_eq!(chunk(&mut far).await["choices"][0]["finish_reason"], "stop");
    let (message, _) = far.hears().await;
    let ClusterMessage::InferenceComplete(complete) = message else { panic!("{message:?}") };
    assert_eq!((complete.tokens_in, complete.tokens_out), (Some(5), Some(2)));
    let (facts, _) = bench.server.ended.lock().unwrap().last().cloned().unwrap();
    assert_eq!(facts.key.as_str(), format!("peer:{}", id(1)));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_may_not_ask_is_told_why() {
    let mut bench = Bench::new(Share::default());
    let _lent = bench.server.lend(&["m"], 1);
    let (link, mut far) = link(&id(1), Kind::StockNear);
    bench.ask(&link, "A", "m");
    let refused = error(&mut far).await;
    assert_eq!((refused.code, refused.status), (Some(ErrorCode::Unavailable), None));
    assert!(refused.error_message.contains("it was not told to share"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_here_is_told_in_stock_words() {
    let mut bench = Bench::new(Share { models: vec!["open".to_owned()], ..shared() });
    let _lent = bench.server.lend(&["open", "secret"], 1);
    let (link, mut far) = link(&id(1), Kind::StockNear);
    for model in ["nope/none", "secret", "*"] {
        bench.ask(&link, model, model);
        let refused = error(&mut far).await;
        assert_eq!(refused.code, Some(ErrorCode::ModelNotLoaded));
        let words = format!("model '{model}' not loaded on this node (loaded: [\"open\"])");
        assert_eq!(refused.error_message, words);
    }
}

#[tokio::test(start_paused = true)]
async fn peers_of_ours_are_not_asked_for_a_peer() {
    let bench = Bench::new(shared());
    let node = mesh(9, settings(), &bench.server).0;
    let (third, mut third_far) = link(&id(3), Kind::WarrenNear);
    node.providers.refresh(&peer(&node.peers, &third, 4));
    bench.server.has_providers(1).await;
    let (link, mut far) = link(&id(1), Kind::WarrenNear);
    bench.ask(&link, "A", "m");
    assert_eq!(error(&mut far).await.code, Some(ErrorCode::ModelNotLoaded));
    third_far.expect_quiet();
    let hops = InferenceRequest { hops: Some(2), ..request("B", &json!({"model": "m"})) };
    bench.take(&link, hops);
    assert_eq!(error(&mut far).await.code, Some(ErrorCode::Unavailable));
}

/// One of our backends may be a Warren that has us as a peer.
#[tokio::test(start_paused = true)]
async fn a_request_that_has_been_here_is_refused_and_says_so() {
    let mut bench = Bench::new(shared());
    let mut lent = bench.server.lend(&["m"], 2);
    let (link, mut far) = link(&id(1), Kind::WarrenNear);
    bench.ask(&link, "A", "m");
    let sent = lent.assigned().await;
    let via = sent.request.headers["x-warren-via"].to_str().unwrap().to_owned();
    let back = InferenceRequest { via: Some(via), ..request("B", &json!({"model": "m"})) };
    bench.take(&link, back);
    let refused = error(&mut far).await;
    assert_eq!(refused.status, Some(508));
    assert!(refused.body.unwrap().contains("loop_detected"));
    assert!(refused.error_message.contains("come back"), "{}", refused.error_message);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_in_use_and_what_is_no_request_are_refused() {
    let mut bench = Bench::new(shared());
    let (link, mut far, _lent, _assignment) = begun(&mut bench, Kind::WarrenNear).await;
    bench.ask(&link, "a", "m");
    assert!(error(&mut far).await.error_message.contains("same id"));
    bench.take(&link, request("B", &json!({"messages": []})));
    let refused = error(&mut far).await;
    assert_eq!(
        (refused.status, refused.error_message.as_str()),
        (Some(400), "the request body has no `model`")
    );
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_run_over_a_link_than_its_bound() {
    let bench = Bench::new(shared());
    let (link, mut far) = link(&id(1), Kind::WarrenNear);
    for number in 0..=MAX_RUNNING {
        // Their tasks do not get to run before the last one has come.
        bench.ask(&link, &number.to_string(), "m");
    }
    let refused = error(&mut far).await;
    assert_eq!(
        (refused.code, refused.request_id),
        (Some(ErrorCode::QueueFull), MAX_RUNNING.to_string().as_str().into())
    );
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_peer_at_once_are_bounded_and_freed() {
    let mut bench = Bench::new(Share { jobs_per_peer: Some(1), ..shared() });
    let (link, mut far, mut lent, mut assignment) = begun(&mut bench, Kind::WarrenNear).await;
    assert_eq!(bench.inbound.lent().load(std::sync::atomic::Ordering::Relaxed), 1);
    bench.ask(&link, "B", "m");
    assert_eq!(error(&mut far).await.code, Some(ErrorCode::QueueFull));
    says(&mut assignment, LAST);
    assignment.answer.end();
    chunk(&mut far).await;
    assert!(matches!(far.hears().await.0, ClusterMessage::InferenceComplete(_)));
    let is_over = async || !bench.inbound.answers_on(&link);
    testkit::eventually("the first to be over", Duration::from_secs(5), is_over).await;
    bench.ask(&link, "B", "m");
    lent.assigned().await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_s_use_of_today_is_read_from_the_ledger() {
    let bench = Bench::new(Share { tokens_per_day: Some(100), ..shared() });
    let row = |peer: u8, at_ms, tokens| UsageEntry {
        at_ms,
        job: JobId::from_random(u128::from(peer)),
        key: format!("peer:{}", id(peer)).into(),
        model: "m".into(),
        served_model: None,
        provider: None,
        endpoint: Endpoint::ChatCompletions,
        outcome: "answered".into(),
        status: Some(200),
        prompt_tokens: Some(tokens),
        completion_tokens: None,
        estimated: false,
        queue_ms: 0,
        first_byte_ms: None,
        total_ms: 0,
        streaming: true,
        requeues: 0,
        resumes: None,
        cost: None,
    };
    let now = Moment::now();
    let rows =
        [row(1, now.wall_ms, 100), row(2, now.midnight_ms() - 1, 100), row(2, now.wall_ms, 99)];
    bench.store.add_usage(&rows).unwrap();
    for (peer, code) in [(1, ErrorCode::Unavailable), (2, ErrorCode::ModelNotLoaded)] {
        let (link, mut far) = link(&id(peer), Kind::WarrenNear);
        bench.ask(&link, "A", "m");
        assert_eq!(error(&mut far).await.code, Some(code));
    }
}

#[tokio::test(start_paused = true)]
async fn a_backends_error_is_told_to_warrens_as_it_is_and_to_stock_peers_in_their_words() {
    for kind in [Kind::WarrenNear, Kind::StockNear] {
        let mut bench = Bench::new(shared());
        let mut lent = bench.server.lend(&["m"], 1);
        let (link, mut far) = link(&id(1), kind);
        bench.ask(&link, "A", "m");
        let mut assignment = lent.assigned().await;
        let head = Head { status: StatusCode::INTERNAL_SERVER_ERROR, headers: ok().headers };
        assignment.answer.head(head).unwrap();
        assignment.answer.chunk(Bytes::from_static(br#"{"error": "boom"}"#)).unwrap();
        assignment.answer.end();
        let refused = error(&mut far).await;
        let words = r#"backend returned 500 Internal Server Error: {"error": "boom"}"#;
        assert_eq!(
            (refused.code, refused.error_message.as_str()),
            (Some(ErrorCode::InternalError), words)
        );
        let body = (kind == Kind::WarrenNear).then(|| r#"{"error": "boom"}"#.to_owned());
        assert_eq!((refused.status, refused.body), (body.as_ref().map(|_| 500), body));
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_dies_never_ends_in_a_complete_answer() {
    let mut bench = Bench::new(shared());
    let (_link, mut far, _lent, assignment) = begun(&mut bench, Kind::StockNear).await;
    assignment.answer.fail("the connection broke");
    let failed = error(&mut far).await;
    assert_eq!(failed.code, Some(ErrorCode::InternalError));
    assert_eq!(failed.error_message, "the backend failed: the connection broke");
    let mut bench = Bench::new(shared());
    let (_link, mut far, _lent, assignment) = begun(&mut bench, Kind::StockNear).await;
    assignment.answer.end();
    assert_eq!(error(&mut far).await.error_message, "the backend's answer was cut off");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_or_a_lost_peer_stops_the_backend_at_once() {
    let mut bench = Bench::new(shared());
    let (link, mut far, mut lent, assignment) = begun(&mut bench, Kind::WarrenFar).await;
    bench.inbound.cancel(&link, &"a".into());
    assert_eq!(lent.canceled().await, assignment.job);
    far.expect_quiet();
    bench.ask(&link, "A", "m");
    let assignment = lent.assigned().await;
    bench.inbound.link_closed(&link);
    assert_eq!(lent.canceled().await, assignment.job);
    let is_over = async || {
        !bench.inbound.answers_on(&link)
            && bench.inbound.lent().load(std::sync::atomic::Ordering::Relaxed) == 0
    };
    testkit::eventually("nothing to be left", Duration::from_secs(5), is_over).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_holds_up_only_its_own_answers() {
    let mut bench = Bench::new(shared());
    let (link, mut far, _lent, mut assignment) = begun(&mut bench, Kind::WarrenNear).await;
    let long = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(60_000));
    let mut held = 0;
    for _ in 0..20 {
        let event = Bytes::from(format!("data: {long}\n\n"));
        held = assignment.answer.chunk(event).unwrap();
        tokio::task::yield_now().await;
    }
    assert!(held > 500_000, "the answer waits in its exchange: {held}");
    let error = InferenceError {
        request_id: "B".into(),
        error_message: String::new(),
        code: None,
        status: None,
        body: None,
    };
    link.tell(&ClusterMessage::InferenceError(error)).unwrap();
    assert!(
        matches!(far.hears().await.0, ClusterMessage::InferenceError(_)),
        "small messages go first"
    );
    says(&mut assignment, LAST);
    assignment.answer.end();
    for _ in 0..21 {
        chunk(&mut far).await;
    }
    assert!(matches!(far.hears().await.0, ClusterMessage::InferenceComplete(_)));
}
