//! A bad frame costs that frame, or that job: never the connection.

use bytes::Bytes;
use dispatch::Ending;
use protocol::relay::binary::{
    HeaderFields, JobFailure, ResponseEnd, ResponseHead, Version, WorkerFrame,
};
use serde_json::json;

use super::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn garbage_is_passed_over() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    let unknown = "r-000000000000000000000000000000ff";
    for text in [
        "no json",
        "",
        "{}",
        "[]",
        r#"{"type":7}"#,
        r#"{"type":"unheard_of"}"#,
        r#"{"type":"pong"}"#,
        r#"{"type":"pong","current_load":-1}"#,
        r#"{"type":"pong","current_load":99999999999999999999}"#,
        r#"{"type":"models_update","models":null,"current_load":0}"#,
        r#"{"type":"response_chunk"}"#,
        r#"{"type":"request","request_id":"r","model":"m"}"#,
        r#"{"type":"error","code":"oops","message":"about nothing"}"#,
        r#"{"type":"error","request_id":"r-1","code":"x","message":"y"}"#,
    ] {
        worker.send(text.to_owned());
    }
    worker.send("[".repeat(100_000));
    for bytes in [&b""[..], b"\x00", b"\x11\0\0\0", b"\x11\0\0\0\x07{", b"\xff\0\0\0\x01garbage"] {
        worker.send(Bytes::from_static(bytes));
    }
    worker.say(
        &json!({"type": "register", "worker_name": "again", "models": [], "max_concurrent": 1}),
    );
    worker.chunk(unknown, "data: late\n\n");
    worker.chunk("not an id", "x");
    worker.complete(unknown, 200, "late");
    worker.complete(&id, 200, "{}");
    worker.chunk(&id, "data: after completion\n\n");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await, (200, "{}".to_owned(), None));
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bad_message_about_a_job_fails_that_job() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.say(&json!({"type": "response_complete", "request_id": id, "status_code": "many"}));
    let cancel = worker.hear().await;
    assert_eq!((&cancel["type"], &cancel["request_id"]), (&json!("cancel"), &json!(id)));
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
    assert_eq!(kit.scheduler.status().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn an_impossible_status_is_the_workers_fault() {
    for status in [0, 99, 101, 1000] {
        let mut kit = Kit::new();
        let mut worker = kit.worker(false).await;
        let mut answer = kit.submit(false);
        let id = worker.request().await;
        worker.complete(&id, status, "{}");
        let _driver = worker.drive();
        assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_of_headers_without_end_fails_its_job_only() {
    let mut kit = Kit::new();
    let worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let headers = std::iter::repeat_n(("a", "1"), 40_000).collect();
    let head = ResponseHead { status_code: 200, headers };
    worker.send(WorkerFrame::Head { job: 1, head }.encode(Version::Three));
    let _driver = worker.drive();
    let failure = read(&mut answer).await.2.unwrap();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("the provider sent more than 256 headers"));
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_to_be_kept_is_the_workers_fault() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    for _ in 0..3 {
        worker.chunk(&id, &"x".repeat(30 << 20));
    }
    assert_eq!(worker.hear().await["type"], "cancel");
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
}

#[tokio::test(start_paused = true)]
async fn a_workers_words_are_cut() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    let long = "x".repeat(200_000);
    worker.say(&json!({"type": "error", "request_id": id, "code": long, "message": long}));
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().detail.unwrap().len(), 602);

    let worker = kit.worker(true).await;
    let mut answer = kit.submit(false);
    let failure = JobFailure { code: long.clone().into(), message: long };
    worker.send(WorkerFrame::Fail { job: 1, failure }.encode(Version::Three));
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().detail.unwrap().len(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_40_mib_is_taken() {
    let mut kit = Kit::new();
    let mut worker = kit.worker(false).await;
    let mut answer = kit.submit(false);
    let id = worker.request().await;
    worker.complete(&id, 200, &"x".repeat(40 << 20));
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.1.len(), 40 << 20);
}

#[tokio::test(start_paused = true)]
async fn binary_frames_out_of_order_cost_their_job() {
    let mut kit = Kit::new();
    let worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    worker.send(Bytes::from_static(b"\x12"));
    worker.send(Bytes::from_static(b"\x99\x00\x00\x00\x01"));
    worker.send(
        WorkerFrame::Chunk { job: 9, bytes: Bytes::from_static(b"late") }.encode(Version::Three),
    );
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await.2.unwrap().ending, Ending::ProviderFailed);
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}

/// The answer before its end is whole, and another job of the same number is not touched.
#[tokio::test(start_paused = true)]
async fn frames_after_the_end_of_their_job_cost_nothing() {
    let mut kit = Kit::new();
    let worker = kit.worker(true).await;
    let mut answer = kit.submit(true);
    let chunk = |bytes| {
        WorkerFrame::Chunk { job: 1, bytes: Bytes::from_static(bytes) }.encode(Version::Three)
    };
    let head = ResponseHead { status_code: 200, headers: HeaderFields::default() };
    worker.send(WorkerFrame::Head { job: 1, head }.encode(Version::Three));
    worker.send(chunk(b"data: 1\n\n"));
    for _ in 0..2 {
        worker
            .send(WorkerFrame::End { job: 1, end: ResponseEnd::default() }.encode(Version::Three));
        worker.send(chunk(b"data: 2\n\n"));
    }
    let _driver = worker.drive();
    assert_eq!(read(&mut answer).await, (200, "data: 1\n\n".to_owned(), None));
    assert_eq!(kit.scheduler.status().workers.len(), 1);
}
