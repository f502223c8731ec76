//! Answers, in both forms.

use bytes::Bytes;
use dispatch::Ending;
use protocol::relay::binary::{
    FailureCode, HeaderFields, JobFailure, ResponseEnd, ResponseHead, ServerFrame, Version,
    WorkerFrame,
};
use scheduler::Event;
use serde_json::json;
use wire::Frame;

use super::kit::{Kit, Worker, read};

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_stock_worker_begins_with_its_first_event() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(true);
    let id = worker.request().await;
    worker.chunk(&id, "da");
    worker.chunk(&id, "ta: 1\n\n");
    worker.chunk(&id, "data: [DONE]\n\n");
    worker.complete(&id, 200, "");
    let _driver = worker.drive();
    let head = answer.head().await.unwrap();
    assert_eq!(head.headers["content-type"], "text/event-stream");
    let mut chunks = Vec::new();
    while let Event::Chunk(chunk) = answer.next().await {
        chunks.push(chunk);
    }
    assert_eq!(chunks, ["data: 1\n\n", "data: [DONE]\n\n"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_a_stock_worker_sends_as_a_chunk_keeps_its_status() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(true);
    let id = worker.request().await;
    worker.chunk(&id, "{\"error\":");
    worker.chunk(&id, "{}}");
    worker.say(&json!({"type": "response_complete", "request_id": id, "status_code": 429,
        "headers": {"retry-after": "7"}, "body": ""}));
    let _driver = worker.drive();
    let head = answer.head().await.unwrap();
    assert_eq!((head.status.as_u16(), &head.headers["retry-after"]), (429, &"7".parse().unwrap()));
    assert_eq!(head.headers["content-length"], "12");
    assert!(matches!(answer.next().await, Event::Chunk(body) if body == "{\"error\":{}}"));
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_has_the_length_it_has() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.say(&json!({"type": "response_complete", "request_id": id, "status_code": 200,
        "headers": {"content-length": "9999", "transfer-encoding": "chunked"}, "body": "{}"}));
    let _driver = worker.drive();
    let head = answer.head().await.unwrap();
    assert_eq!(head.headers["content-length"], "2");
    assert!(!head.headers.contains_key("transfer-encoding"));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_worker_ends_only_its_job() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let (mut failed, mut served) = (kit.submit(false), kit.submit(false));
    let (first, second) = (worker.request().await, worker.request().await);
    worker.say(&json!({"type": "error", "code": "odd", "message": "about nothing"}));
    worker.say(&json!({"type": "error", "request_id": first, "code": "oom", "message": "no room"}));
    worker.complete(&second, 200, "{}");
    let _driver = worker.drive();
    let failure = read(&mut failed).await.2.unwrap();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("oom: no room"));
    assert_eq!(read(&mut served).await.0, 200);
}

async fn number(worker: &mut Worker) -> u32 {
    let Some(Frame::Binary(bytes)) = worker.frame().await else { panic!("no frame") };
    let ServerFrame::Request { job, head, body } = ServerFrame::decode(bytes).unwrap() else {
        panic!("no request")
    };
    assert_eq!((&*head.endpoint_path, &*body), ("/v1/chat/completions", &b"{\"model\":\"m\"}"[..]));
    job
}

fn send(worker: &Worker, frame: &WorkerFrame) {
    worker.send(frame.encode(Version::Three));
}

#[tokio::test(start_paused = true)]
async fn each_worker_is_sent_requests_in_the_version_that_it_knows() {
    for (version, kind) in [(Version::Two, 0x01), (Version::Three, 0x04)] {
        let mut kit = Kit::new();
        let mut worker = kit.registered(kit.link_of(Some(version)), json!({})).await;
        let _answer = kit.submit(true);
        let Some(Frame::Binary(bytes)) = worker.frame().await else { panic!("no frame") };
        assert_eq!(bytes[0], kind);
        assert!(matches!(ServerFrame::decode(bytes), Ok(ServerFrame::Request { .. })));
    }
}

fn whole(job: u32, status_code: u16, length: &str) -> WorkerFrame {
    let headers = HeaderFields::from_iter([("content-length", length)]);
    let head = ResponseHead { status_code, headers };
    WorkerFrame::Whole { job, head, body: Bytes::from_static(b"data") }
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_in_one_frame_is_head_body_and_end() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(true).await;
    let mut answer = kit.submit(false);
    let job = number(&mut worker).await;
    send(&worker, &whole(job, 201, "4"));
    let _driver = worker.drive();
    let (status, body, failure) = read(&mut answer).await;
    assert_eq!((status, &*body), (201, "data"));
    assert!(failure.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_that_is_bad_or_comes_after_a_head_fails_its_job() {
    for (frame, begun, why) in [
        (whole(1, 200, "x"), false, "the provider sent an impossible content-length"),
        (whole(1, 200, "4"), true, "the worker sent a whole answer after a head"),
    ] {
        let mut kit = Kit::new();
        let mut worker = kit.worker(true).await;
        let mut answer = kit.submit(true);
        assert_eq!(number(&mut worker).await, 1);
        if begun {
            let head = ResponseHead { status_code: 200, headers: HeaderFields::default() };
            send(&worker, &WorkerFrame::Head { job: 1, head });
        }
        send(&worker, &frame);
        let _driver = worker.drive();
        assert_eq!(read(&mut answer).await.2.unwrap().detail.as_deref(), Some(why));
    }
}

#[tokio::test(start_paused = true)]
async fn binary_answers_pass_whatever_their_bytes_and_give_credit_back() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let job = number(&mut worker).await;
    let headers = HeaderFields::from_iter([("x-back", "1")]);
    send(&worker, &WorkerFrame::Head { job, head: ResponseHead { status_code: 200, headers } });
    let bytes = Bytes::from(vec![0xff; 70_000]);
    send(&worker, &WorkerFrame::Chunk { job, bytes: bytes.clone() });
    let credit = tokio::spawn(async move {
        let Some(Frame::Binary(frame)) = worker.frame().await else { panic!("no credit") };
        send(&worker, &WorkerFrame::End { job, end: ResponseEnd::default() });
        let _driver = worker.drive();
        ServerFrame::decode(frame).unwrap()
    });
    assert_eq!(answer.head().await.unwrap().headers["x-back"], "1");
    assert!(matches!(answer.next().await, Event::Chunk(chunk) if chunk == bytes));
    assert_eq!(credit.await.unwrap(), ServerFrame::Credit { job, bytes: 70_000 });
    assert!(matches!(answer.next().await, Event::End));
}

#[tokio::test(start_paused = true)]
async fn a_binary_failure_says_why() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let job = number(&mut worker).await;
    let failure =
        JobFailure { code: FailureCode::BackendBroke, message: "connection reset".into() };
    send(&worker, &WorkerFrame::Fail { job, failure });
    let _driver = worker.drive();
    let failure = read(&mut answer).await.2.unwrap();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("connection reset"));
}

/// Neither the backend's refusal nor its words about loading reach the client: the job comes again.
#[tokio::test(start_paused = true)]
async fn a_job_of_a_backend_that_takes_no_requests_comes_again() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let job = number(&mut worker).await;
    let code = FailureCode::BackendUnreachable;
    let failure = JobFailure { code, message: "no route to 10.0.0.7".into() };
    send(&worker, &WorkerFrame::Fail { job, failure });
    let second = number(&mut worker).await;
    assert_ne!(job, second);
    let body = r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
    let length = ("content-length".to_owned(), body.len().to_string());
    let head = ResponseHead { status_code: 503, headers: HeaderFields::from_iter([length]) };
    send(&worker, &WorkerFrame::Head { job: second, head });
    send(&worker, &WorkerFrame::Chunk { job: second, bytes: body.into() });
    send(&worker, &WorkerFrame::End { job: second, end: ResponseEnd::default() });
    let third = number(&mut worker).await;
    let head = ResponseHead { status_code: 200, headers: HeaderFields::default() };
    send(&worker, &WorkerFrame::Head { job: third, head });
    send(&worker, &WorkerFrame::End { job: third, end: ResponseEnd::default() });
    let _driver = worker.drive();
    assert_eq!(answer.head().await.unwrap().status.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stock_workers_backend_that_loads_is_asked_again() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.complete(&id, 503, r#"{"error":{"message":"Loading model"}}"#);
    let second = worker.request().await;
    worker.complete(&second, 200, "{}");
    let _driver = worker.drive();
    assert_eq!(answer.head().await.unwrap().status.as_u16(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_not_acknowledged_goes_to_another_worker() {
    let mut kit = Kit::new();
    let acknowledges = json!({"acknowledges": true});
    let mut sleeper = kit.worker_with(true, acknowledges.clone()).await;
    let mut answer = kit.submit(true);
    let first = number(&mut sleeper).await;
    let mut other = kit.worker_with(true, acknowledges).await;
    let began = tokio::time::Instant::now();
    let job = number(&mut other).await;
    assert_eq!(began.elapsed().as_secs(), 10);
    send(&other, &WorkerFrame::Accepted { job });
    other.settle().await;
    let head = |job, status_code| WorkerFrame::Head {
        job,
        head: ResponseHead { status_code, headers: HeaderFields::default() },
    };
    // The sleeper wakes up: its answer reaches nobody.
    send(&sleeper, &head(first, 201));
    let _sleeper = sleeper.drive();
    tokio::time::sleep(std::time::Duration::from_secs(15)).await;
    send(&other, &head(job, 200));
    send(&other, &WorkerFrame::End { job, end: ResponseEnd::default() });
    let _driver = other.drive();
    assert_eq!(answer.head().await.unwrap().status.as_u16(), 200);
}
