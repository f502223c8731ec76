//! Peers as providers, with the peers played by hand.
//!
//! - `load`: what a peer says of how much it has to do
//! - `passcode`: the peers that a machine with a passcode asks

mod load;
mod passcode;

use std::sync::Arc;

use protocol::mesh::{
    ClusterMessage, Dialect, WireId,
    cluster::{BadMessage, ErrorCode, FailedRequest, InferenceRequest, decode},
};
use scheduler::{Distance, Ending};
use serde_json::{Value, json};

use crate::{
    link::Link,
    node::Node,
    testing::{FarEnd, Kind, Server, id, link, mesh, peer, rest, settings},
};

const DELTA: &str = r#"{"choices":[{"index":0,"delta":{"content":"é"}}],"x":1.50}"#;

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

struct Bench {
    server: Server,
    node: Arc<Node>,
}

impl Bench {
    fn new() -> Self {
        let server = Server::new();
        let node = mesh(9, settings(), &server).0;
        Self { server, node }
    }

    /// A peer joins.
    fn peer(&self, number: u8, kind: Kind, capacity: u32) -> (Arc<Link>, FarEnd) {
        let (link, far) = link(&id(number), kind);
        self.node.providers.refresh(&peer(&self.node.peers, &link, capacity));
        (link, far)
    }

    fn refresh(&self, number: u8) {
        self.node.providers.refresh(&self.node.peers.get(&id(number)).unwrap());
    }

    fn says(&self, link: &Arc<Link>, message: &Value) {
        match decode(message.to_string().as_bytes()) {
            Ok(decoded) => self.node.providers.answered(link, decoded.message),
            Err(BadMessage { request: Some(FailedRequest::Nothing(request)), why, .. }) => {
                self.node.providers.garbled(link, &request, &why);
            }
            Err(bad) => panic!("{bad}"),
        }
    }

    fn chunk(&self, link: &Arc<Link>, request: &WireId, chunk: &str) {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        let id = request.as_str();
        self.says(link, &json!({"inferenceChunk": {"_0": {"requestID": id, "chunk": chunk}}}));
    }

    fn complete(&self, link: &Arc<Link>, request: &WireId) {
        let id = request.as_str();
        self.says(link, &json!({"inferenceComplete": {"_0": {"requestID": id, "tokensOut": 4}}}));
    }

    fn error(&self, link: &Arc<Link>, request: &WireId, code: ErrorCode) {
        let error =
            json!({"requestID": request.as_str(), "errorMessage": "boom", "code": code.as_str()});
        self.says(link, &json!({"inferenceError": {"_0": error}}));
    }

    /// Ends a link, as the node does.
    fn lose(&self, link: &Arc<Link>) {
        link.close("lost");
        let peer = self.node.peers.get(&link.peer).unwrap();
        peer.take_link(link.number);
        self.node.providers.refresh(&peer);
        self.node.providers.link_closed(link);
    }
}

async fn next_request(far: &mut FarEnd) -> InferenceRequest {
    match far.hears().await.0 {
        ClusterMessage::InferenceRequest(request) => request,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_passes_chunk_by_chunk() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 2);
    let mut answer = bench.server.ask(true);
    let request = next_request(&mut far).await;
    assert_eq!((request.hops, request.streaming), (Some(1), true));
    let body: Value = serde_json::from_str(request.request.get()).unwrap();
    assert_eq!(
        (&body["top_k"], &body["stream_options"]["include_usage"]),
        (&json!(4), &json!(true))
    );
    bench.chunk(&link, &request.request_id, DELTA);
    let head = answer.head().await.unwrap();
    assert_eq!(
        (head.status.as_u16(), &head.headers["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    bench.complete(&link, &request.request_id);
    let (text, well) = rest(&mut answer).await;
    let chunk: Value =
        serde_json::from_str(text.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(chunk, serde_json::from_str::<Value>(DELTA).unwrap());
    assert!(well && text.ends_with("\n\ndata: [DONE]\n\n"));
    let (facts, ended) = bench.server.ended.lock().unwrap().last().cloned().unwrap();
    assert_eq!(
        (facts.key.as_str(), ended.provider_name),
        ("local", Some(format!("peer:{}", id(1)).into()))
    );
    assert_eq!(ended.usage.completion_tokens, Some(4));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_stream_gets_one_answer() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::StockNear, 1);
    let mut answer = bench.server.ask(false);
    let (message, dialect) = far.hears().await;
    let ClusterMessage::InferenceRequest(request) = message else { panic!("{message:?}") };
    assert_eq!((dialect, request.hops), (Dialect::Wrapped, None));
    assert!(request.request.get().contains("\"stream\":true"));
    // A Mac writes our ids in upper case.
    let upper = WireId::from(&*request.request_id.as_str().to_ascii_uppercase());
    bench.chunk(&link, &upper, DELTA);
    bench.chunk(&link, &upper, DELTA);
    bench.chunk(&link, &upper, STOP);
    bench.complete(&link, &upper);
    assert_eq!(answer.head().await.unwrap().headers["content-type"], "application/json");
    let (text, well) = rest(&mut answer).await;
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((whole["choices"][0]["message"]["content"].as_str(), well), (Some("éé"), true));
}

#[tokio::test(start_paused = true)]
async fn requests_run_side_by_side_and_their_answers_are_not_mixed() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::StockFar, 2);
    let mut answers = [bench.server.ask(true), bench.server.ask(true)];
    let (first, second) =
        (next_request(&mut far).await.request_id, next_request(&mut far).await.request_id);
    bench.chunk(&link, &second, r#"{"choices":[{"delta":{"content":"second"}}]}"#);
    bench.chunk(&link, &first, r#"{"choices":[{"delta":{"content":"first"}}]}"#);
    for id in [&second, &first] {
        bench.chunk(&link, id, STOP);
        bench.complete(&link, id);
    }
    for (answer, word) in answers.iter_mut().zip(["first", "second"]) {
        answer.head().await.unwrap();
        let (text, well) = rest(answer).await;
        assert!(well && text.contains(word), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_one_peer_declines_goes_to_another() {
    for code in [ErrorCode::QueueFull, ErrorCode::Unavailable, ErrorCode::ModelNotLoaded] {
        let mut bench = Bench::new();
        let (near, mut near_far) = bench.peer(1, Kind::WarrenNear, 2);
        let (far, mut far_far) = bench.peer(2, Kind::WarrenFar, 1);
        let mut answer = bench.server.ask(true);
        let first = next_request(&mut near_far).await;
        bench.error(&near, &first.request_id, code);
        let second = next_request(&mut far_far).await;
        bench.chunk(&far, &second.request_id, DELTA);
        bench.complete(&far, &second.request_id);
        assert_eq!(answer.head().await.unwrap().status, 200, "{code:?}");
        assert!(rest(&mut answer).await.1);
    }
}

#[tokio::test(start_paused = true)]
async fn where_there_is_no_other_the_client_is_told() {
    let table = [
        (ErrorCode::QueueFull, 429),
        (ErrorCode::Unavailable, 503),
        (ErrorCode::ModelNotLoaded, 404),
    ];
    for (code, status) in table {
        let mut bench = Bench::new();
        let (link, mut far) = bench.peer(1, Kind::WarrenNear, 2);
        let mut answer = bench.server.ask(true);
        let request = next_request(&mut far).await;
        bench.error(&link, &request.request_id, code);
        assert_eq!(answer.head().await.unwrap().status.as_u16(), status);
        assert!(rest(&mut answer).await.0.contains("the peer failed: boom"));
        let load = bench.server.scheduler.status().workers[0].reported_load;
        assert_eq!(load, if code == ErrorCode::QueueFull { 2 } else { 0 });
        bench.refresh(1);
        assert_eq!(bench.server.scheduler.status().workers[0].reported_load, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_peers_backend_is_the_clients() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 1);
    let mut answer = bench.server.ask(true);
    let request = next_request(&mut far).await;
    let body = r#"{"error":{"message":"too long"}}"#;
    bench.says(
        &link,
        &json!({"inferenceError": {"requestID": request.request_id.as_str(),
        "errorMessage": "x", "code": "internal_error", "status": 400, "body": body}}),
    );
    assert_eq!(answer.head().await.unwrap().status, 400);
    assert_eq!(rest(&mut answer).await, (body.to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn no_answer_ends_well_that_is_none() {
    let error = r#"{"error":{"message":"boom"}}"#;
    for bad in [None, Some(error), Some("null"), Some("[]")] {
        let mut bench = Bench::new();
        let (link, mut far) = bench.peer(1, Kind::WarrenNear, 1);
        let mut answer = bench.server.ask(true);
        let request = next_request(&mut far).await.request_id;
        match bad {
            Some(chunk) => bench.chunk(&link, &request, chunk),
            None => bench.complete(&link, &request),
        }
        let failure = answer.head().await.unwrap_err();
        assert_eq!(failure.ending, Ending::ProviderFailed, "{bad:?}");
        if bad.is_some() {
            let (message, _) = far.hears().await;
            assert!(matches!(message, ClusterMessage::InferenceCancel(_)), "{message:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stock_answer_that_is_complete_in_its_middle_is_none() {
    for (kind, streaming) in [(Kind::StockFar, true), (Kind::StockNear, false)] {
        let mut bench = Bench::new();
        let (link, mut far) = bench.peer(1, kind, 1);
        let mut answer = bench.server.ask(streaming);
        let request = next_request(&mut far).await.request_id;
        bench.chunk(&link, &request, DELTA);
        bench.complete(&link, &request);
        if streaming {
            answer.head().await.unwrap();
            let (text, well) = rest(&mut answer).await;
            assert!(!well && !text.contains("[DONE]"), "{text}");
        } else {
            assert_eq!(answer.head().await.unwrap_err().ending, Ending::ProviderFailed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_first_chunk_a_failure_is_final() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 1);
    let (_other, mut other_far) = bench.peer(2, Kind::WarrenFar, 1);
    let mut answer = bench.server.ask(true);
    let request = next_request(&mut far).await.request_id;
    bench.chunk(&link, &request, DELTA);
    bench.error(&link, &request, ErrorCode::QueueFull);
    answer.head().await.unwrap();
    assert!(!rest(&mut answer).await.1);
    other_far.expect_quiet();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_stops_a_warren_at_once() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenFar, 1);
    let answer = bench.server.ask(true);
    let request = next_request(&mut far).await.request_id;
    drop(answer);
    let (message, _) = far.hears().await;
    let ClusterMessage::InferenceCancel(cancel) = message else { panic!("{message:?}") };
    assert_eq!(cancel.request_id, request);
    bench.chunk(&link, &request, DELTA);
    bench.complete(&link, &request);
    assert_eq!(bench.node.providers.late(), 2);
    assert!(!link.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_closes_a_stock_session_that_nothing_else_needs() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::StockFar, 2);
    let (first, second) = (bench.server.ask(true), bench.server.ask(true));
    let ids = [next_request(&mut far).await.request_id, next_request(&mut far).await.request_id];
    drop(first);
    let is_freed = async || bench.server.scheduler.status().in_flight == 1;
    testkit::eventually("the first to be stopped", std::time::Duration::from_secs(5), is_freed)
        .await;
    bench.chunk(&link, &ids[0], DELTA);
    assert!(!link.is_closed());
    drop(second);
    testkit::within("the session to be closed", link.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_lost_moves_what_has_not_begun_and_fails_the_rest() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 2);
    let (other, mut other_far) = bench.peer(2, Kind::WarrenFar, 2);
    let (mut begun, mut waiting) = (bench.server.ask(true), bench.server.ask(true));
    let first = next_request(&mut far).await.request_id;
    next_request(&mut far).await;
    bench.chunk(&link, &first, DELTA);
    bench.lose(&link);
    begun.head().await.unwrap();
    assert!(!rest(&mut begun).await.1);
    let moved = next_request(&mut other_far).await.request_id;
    bench.chunk(&other, &moved, DELTA);
    bench.complete(&other, &moved);
    waiting.head().await.unwrap();
    assert!(rest(&mut waiting).await.1);
    bench.server.has_providers(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_relays_list_keeps_its_place_without_a_link() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenFar, 1);
    bench.node.peers.get(&id(1)).unwrap().set_listed(&"relay.test".into(), true);
    let mut answer = bench.server.ask(true);
    next_request(&mut far).await;
    bench.lose(&link);
    let failure = answer.head().await.unwrap_err();
    assert_eq!(failure.detail.as_deref(), Some("the link to the peer was lost"));
    bench.server.has_providers(1).await;
    bench.node.peers.get(&id(1)).unwrap().set_listed(&"relay.test".into(), false);
    bench.refresh(1);
    bench.server.has_providers(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_one_provider_whatever_link_leads_to_it() {
    let mut bench = Bench::new();
    let (_far_link, mut far) = bench.peer(1, Kind::WarrenFar, 3);
    let before = bench.server.scheduler.status().workers.remove(0);
    assert_eq!(before.distance, Distance::Far);
    let _over_the_relay = bench.server.ask(true);
    next_request(&mut far).await;
    let (_near_link, mut near) = bench.peer(1, Kind::WarrenNear, 3);
    let after = bench.server.scheduler.status().workers.remove(0);
    assert_eq!((after.id, after.distance), (before.id, Distance::Near));
    let _direct = bench.server.ask(true);
    next_request(&mut near).await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_peer_finishes_what_it_has_and_leaves() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 2);
    let mut answer = bench.server.ask(true);
    let request = next_request(&mut far).await.request_id;
    bench.node.peers.get(&id(1)).unwrap().learn(|facts| facts.throttle = 0);
    bench.refresh(1);
    assert_eq!(bench.server.scheduler.status().workers[0].throttle, 0);
    let _waits = bench.server.ask(true);
    bench.chunk(&link, &request, DELTA);
    bench.complete(&link, &request);
    answer.head().await.unwrap();
    assert!(rest(&mut answer).await.1);
    far.expect_quiet();
    bench.refresh(1);
    bench.server.has_providers(0).await;
    bench.node.peers.get(&id(1)).unwrap().learn(|facts| facts.throttle = 25);
    bench.refresh(1);
    next_request(&mut far).await;
    assert_eq!(bench.server.scheduler.status().workers[0].throttle, 25);
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_for_another() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 1);
    let (forger, _forger_far) = bench.peer(2, Kind::WarrenFar, 1);
    let mut answer = bench.server.ask(true);
    let request = next_request(&mut far).await.request_id;
    bench.chunk(&forger, &request, r#"{"choices":[{"delta":{"content":"forged"}}]}"#);
    bench.error(&forger, &request, ErrorCode::InternalError);
    bench.chunk(&link, &"unknown".into(), DELTA);
    assert_eq!(bench.node.providers.late(), 3);
    bench.chunk(&link, &request, DELTA);
    bench.complete(&link, &request);
    answer.head().await.unwrap();
    let (text, well) = rest(&mut answer).await;
    assert!(well && !text.contains("forged"));
}

#[tokio::test(start_paused = true)]
async fn after_the_end_nobody_joins() {
    let mut bench = Bench::new();
    let (_link, mut far) = bench.peer(1, Kind::WarrenNear, 1);
    let mut answer = bench.server.ask(true);
    next_request(&mut far).await;
    bench.node.providers.close();
    bench.refresh(1);
    bench.server.has_providers(0).await;
    bench.server.scheduler.abort();
    assert!(answer.head().await.is_err());
}
