//! The endpoints that a worker serves: reported by it, or learnt from its answers.

use base::{Endpoint, Endpoints};
use bytes::Bytes;
use dispatch::Ending;
use protocol::relay::binary::{
    HeaderFields, ResponseEnd, ResponseHead, ServerFrame, Version, WorkerFrame,
};
use scheduler::Answer;
use serde_json::json;
use wire::Frame;

use super::kit::{Kit, Worker, read};

const MESSAGES: &str = "/v1/messages";
const CHAT: &str = "/v1/chat/completions";
const NO_PATH: &str = r#"{"detail":"Not Found"}"#;

/// A request as the worker got it, in either form.
struct Got {
    path: String,
    id: String,
    number: u32,
}

/// The next request; credit is passed over.
async fn got(worker: &mut Worker, binary: bool) -> Got {
    if !binary {
        let request = worker.hear().await;
        assert_eq!(request["type"], "request");
        let text = |field: &str| request[field].as_str().unwrap().to_owned();
        return Got { path: text("endpoint_path"), id: text("request_id"), number: 0 };
    }
    loop {
        let Some(Frame::Binary(bytes)) = worker.frame().await else { panic!("no frame") };
        if let ServerFrame::Request { job, head, .. } = ServerFrame::decode(bytes).unwrap() {
            return Got { path: head.endpoint_path, id: head.request_id, number: job };
        }
    }
}

/// Answers with a status and a body, which comes in two pieces in the binary form.
fn answer(worker: &Worker, binary: bool, got: &Got, status: u16, body: &str) {
    if !binary {
        return worker.complete(&got.id, status, body);
    }
    let job = got.number;
    let headers = HeaderFields::from_iter([("content-type", "application/json")]);
    let head = ResponseHead { status_code: status, headers };
    worker.send(WorkerFrame::Head { job, head }.encode(Version::Three));
    let (first, second) = body.split_at(body.len() / 2);
    for piece in [first, second] {
        let bytes = Bytes::from(piece.to_owned());
        worker.send(WorkerFrame::Chunk { job, bytes }.encode(Version::Three));
    }
    worker.send(WorkerFrame::End { job, end: ResponseEnd::default() }.encode(Version::Three));
}

/// Reads an answer while the worker's link is driven.
async fn answered(worker: &mut Worker, answer: &mut Answer) -> (u16, String) {
    tokio::select! {
        (status, body, failure) = read(answer) => {
            assert_eq!(failure, None);
            (status, body)
        }
        frame = worker.other_frame() => panic!("{frame:?}"),
    }
}

async fn a_missing_endpoint_is_learnt(binary: bool, status: u16, body: &str) {
    let mut kit = Kit::new();
    let mut worker = kit.worker(binary).await;
    let mut first = kit.submit_messages(true);
    let request = got(&mut worker, binary).await;
    assert_eq!(request.path, MESSAGES, "until it is known better");
    answer(&worker, binary, &request, status, body);
    let second = got(&mut worker, binary).await;
    assert_eq!((second.path.as_str(), &second.id), (CHAT, &request.id));
    answer(&worker, binary, &second, 200, "{\"ok\":1}");
    assert_eq!(answered(&mut worker, &mut first).await, (200, "{\"ok\":1}".to_owned()));
    let _second = kit.submit_messages(true);
    assert_eq!(got(&mut worker, binary).await.path, CHAT, "it is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_missing_endpoint_of_a_stock_worker_is_learnt() {
    for (status, body) in [(404, NO_PATH), (405, "{\"detail\":\"Method Not Allowed\"}"), (501, "")]
    {
        a_missing_endpoint_is_learnt(false, status, body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_endpoint_of_a_worker_with_frames_is_learnt() {
    for (status, body) in [
        (404, NO_PATH),
        (200, "{\"error\":\"Unexpected endpoint or method. (POST /v1/messages)\"}"),
    ] {
        a_missing_endpoint_is_learnt(true, status, body).await;
    }
}

async fn passes_as_it_is(further: serde_json::Value, binary: bool, status: u16, body: &str) {
    let mut kit = Kit::new();
    let mut worker = kit.worker_with(binary, further).await;
    let mut first = kit.submit_messages(false);
    let request = got(&mut worker, binary).await;
    answer(&worker, binary, &request, status, body);
    assert_eq!(answered(&mut worker, &mut first).await, (status, body.to_owned()));
    let _second = kit.submit_messages(false);
    assert_eq!(got(&mut worker, binary).await.path, MESSAGES, "nothing was learnt");
}

#[tokio::test(start_paused = true)]
async fn a_good_answer_that_was_held_back_for_a_moment_passes_as_it_is() {
    passes_as_it_is(json!({}), true, 200, "{\"id\":\"msg_1\",\"type\":\"message\"}").await;
    passes_as_it_is(json!({}), true, 400, "{\"error\":{\"message\":\"max_tokens\"}}").await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_tells_is_not_doubted() {
    for binary in [false, true] {
        let registration = json!({"endpoints": [MESSAGES, CHAT]});
        passes_as_it_is(registration, binary, 404, NO_PATH).await;
    }
}

#[tokio::test(start_paused = true)]
async fn announced_endpoints_count_at_once_and_can_change() {
    for binary in [false, true] {
        let mut kit = Kit::new();
        let registration = json!({"endpoints": [CHAT, "/v1/videos"]});
        let mut worker = kit.worker_with(binary, registration).await;
        let mut first = kit.submit_messages(false);
        let request = got(&mut worker, binary).await;
        assert_eq!(request.path, CHAT);
        answer(&worker, binary, &request, 200, "{}");
        assert_eq!(answered(&mut worker, &mut first).await.0, 200);
        worker.say(&json!({
            "type": "models_update", "models": ["m"], "current_load": 0,
            "endpoints": [MESSAGES],
        }));
        worker.heard().await;
        let _second = kit.submit_messages(false);
        assert_eq!(got(&mut worker, binary).await.path, MESSAGES);
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_of_text_has_no_endpoint_of_bytes() {
    use Endpoint::{ChatCompletions, Rerank, Speech, Transcriptions};
    let all: Endpoints = [ChatCompletions, Rerank, Speech, Transcriptions].into_iter().collect();
    let paths: Vec<_> = all.iter().map(Endpoint::path).collect();
    for binary in [false, true] {
        let kit = Kit::new();
        let mut worker = kit.worker_with(binary, json!({"endpoints": paths})).await;
        let served = || kit.scheduler.status().workers[0].endpoints;
        let expected = if binary { all } else { all.as_text() };
        assert_eq!(served(), expected, "{binary}");
        for endpoints in [&[CHAT][..], &paths] {
            worker.say(&json!({
                "type": "models_update", "models": ["m"], "current_load": 0, "endpoints": endpoints,
            }));
            worker.heard().await;
        }
        assert_eq!(served(), expected, "{binary}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_translated_ends_its_job_as_a_failure() {
    for binary in [false, true] {
        let mut kit = Kit::new();
        let mut worker = kit.worker(binary).await;
        let mut job = kit.submit_senseless();
        let request = got(&mut worker, binary).await;
        answer(&worker, binary, &request, 200, "{\"id\":1}");
        let _driver = worker.drive();
        let failure = read(&mut job).await.2.unwrap();
        assert_eq!(failure.ending, Ending::ProviderFailed, "{binary}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_to_another_worker_from_one_that_has_no_endpoint_for_it() {
    for binary in [false, true] {
        let mut kit = Kit::new();
        let mut worker = kit.worker(binary).await;
        let mut job = kit.submit(false);
        let request = got(&mut worker, binary).await;
        let mut other = kit.worker(binary).await;
        answer(&worker, binary, &request, 404, NO_PATH);
        worker.heard().await;
        let second = got(&mut other, binary).await;
        assert_eq!(second.id, request.id);
        answer(&other, binary, &second, 200, "{\"ok\":1}");
        assert_eq!(answered(&mut other, &mut job).await.0, 200);
    }
}
