//! Backends that fail.

use std::time::Duration;

use bytes::Bytes;
use protocol::relay::{FailureCode, JobFailure, RequestHead, ServerFrame, WorkerFrame};

use crate::support::{Bench, RawServer, STREAM, ServerEnd};

async fn failure(server: &mut ServerEnd, expected: u32) -> JobFailure {
    match server.frame().await {
        WorkerFrame::Fail { job, failure } if job == expected => failure,
        other => panic!("{other:?}"),
    }
}

async fn nobody_at_home() -> String {
    RawServer::start().await.url()
}

#[tokio::test]
async fn a_backend_that_refuses_is_502_as_text() {
    let url = nobody_at_home().await;
    let mut bench = Bench::with(false, |backend| backend.url = url).await;
    bench.server.request(1, true, "{}");
    let complete = bench.server.complete().await;
    assert_eq!(complete.status_code, 502);
    let body = complete.body.unwrap();
    assert!(
        body.starts_with(r#"{"error":{"message":"the model server cannot be reached"#),
        "{body}"
    );
    assert!(body.contains("backend_unreachable") && !body.contains("127.0.0.1"), "{body}");
    bench.server.request_at("/v1/messages", 2, false, "{}");
    let body = bench.server.complete().await.body.unwrap();
    assert!(body.starts_with(r#"{"type":"error","error":{"type":"api_error""#), "{body}");
}

#[tokio::test]
async fn a_backend_that_refuses_fails_as_frames_before_any_head() {
    let url = nobody_at_home().await;
    let mut bench = Bench::with(true, |backend| backend.url = url).await;
    bench.server.request(1, true, "{}");
    let failure = failure(&mut bench.server, 1).await;
    assert_eq!(failure.code, FailureCode::BackendUnreachable);
    assert_eq!(failure.message, "the model server cannot be reached");
}

#[tokio::test]
async fn a_backend_that_hangs_is_504_and_closed() {
    let short = Duration::from_millis(50);
    let mut bench = Bench::with(false, |backend| backend.timeouts.first_byte = short).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    assert_eq!(bench.server.complete().await.status_code, 504);
    connection.closed().await;
}

#[tokio::test]
async fn a_backend_that_dies_in_the_middle_ends_that_job_only() {
    let mut bench = Bench::new(true).await;
    bench.server.request(1, true, "{}");
    let (mut dying, _) = bench.raw.request().await;
    bench.server.request(2, true, "{}");
    let (mut living, _) = bench.raw.request().await;
    dying.write(STREAM).await;
    dying.write("3\r\nabc\r\n").await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 1, .. }));
    assert_eq!(bench.server.bytes(1).await, "abc");
    drop(dying);
    assert_eq!(failure(&mut bench.server, 1).await.code, FailureCode::BackendBroke);
    living.json("200 OK", "", "{}").await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 2, .. }));
    assert_eq!(bench.server.bytes(2).await, "{}");
    assert!(matches!(bench.server.frame().await, WorkerFrame::End { job: 2, .. }));
}

/// A stock server ignores a status that comes after chunks: only an event tells its client.
#[tokio::test]
async fn a_backend_that_dies_in_the_middle_is_an_error_event_and_502_as_text() {
    let messages = r#"event: error\ndata: {"type":"error","error":{"type":"api_error""#;
    let cases = [
        ("/v1/chat/completions", r#"data: {"error":{"message":"the model server"#),
        ("/v1/messages", messages),
        ("/v1/responses", r#"event: error\ndata: {"type":"error","code":"backend_broke""#),
    ];
    for (path, event) in cases {
        let mut bench = Bench::new(false).await;
        bench.server.request_at(path, 1, true, "{}");
        let (mut connection, _) = bench.raw.request().await;
        connection.write(STREAM).await;
        connection.write("7\r\ndata: a\r\n").await;
        assert_eq!(bench.server.chunk(1).await, "data: a");
        drop(connection);
        let last = bench.server.chunk(1).await;
        let last = last.strip_prefix("\n\n").expect("the half event is closed first");
        assert!(last.starts_with(&event.replace("\\n", "\n")), "{last}");
        assert!(last.ends_with("\n\n"), "{last}");
        assert_eq!(bench.server.complete().await.status_code, 502);
        assert!(bench.server.is_silent());
    }
}

#[tokio::test]
async fn a_stream_that_fails_before_its_first_chunk_keeps_its_status_as_text() {
    let mut bench = Bench::new(false).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    drop(connection);
    let complete = bench.server.complete().await;
    assert_eq!(complete.status_code, 502);
    assert!(complete.body.unwrap().contains("backend_broke"));
}

#[tokio::test]
async fn a_body_in_pieces_arrives_whole_and_renamed() {
    let bench = Bench::new(true).await;
    let head = RequestHead {
        request_id: "r-1".to_owned(),
        model: "fast".to_owned(),
        endpoint_path: "/v1/completions".to_owned(),
        body_len: 24,
        ..RequestHead::default()
    };
    let piece = |piece: &'static str| ServerFrame::Body { job: 1, piece: piece.into() };
    let body = Bytes::from_static(b"{\"model\":");
    bench.server.send(&ServerFrame::Request { job: 1, head, body });
    bench.server.send(&piece("\"fast\","));
    bench.server.send(&piece("\"a\" : 1}"));
    let (_connection, request) = bench.raw.request().await;
    assert_eq!(request.body, br#"{"model":"slow","a" : 1}"#);
}
