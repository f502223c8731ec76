//! The answers of a backend, and the server's view of them.

use protocol::relay::{RegisterAck, ResponseEnd, Version, WorkerFrame};
use wire::Frame;
use worker::Lend;

use crate::support::{Bench, Connection, Pipes, RawServer, RunningWorker, STREAM, backend, config};

async fn chunk(connection: &mut Connection, bytes: &[u8]) {
    connection.write(format!("{:x}\r\n", bytes.len())).await;
    connection.write(bytes).await;
    connection.write("\r\n").await;
}

#[tokio::test]
async fn a_binary_stream_arrives_read_by_read_and_byte_for_byte() {
    let mut bench = Bench::new(true).await;
    bench.server.request(7, true, r#"{"model":"m"}"#);
    let (mut connection, request) = bench.raw.request().await;
    assert_eq!(request.line, "POST /v1/chat/completions");
    assert_eq!(request.body, br#"{"model":"m"}"#);
    assert!(request.headers.contains(&"x-foo: 2".to_owned()));
    connection.write(STREAM).await;
    let WorkerFrame::Head { job: 7, head } = bench.server.frame().await else { panic!() };
    assert_eq!(head.status_code, 200);
    let content_type = (&b"content-type"[..], &b"text/event-stream"[..]);
    assert_eq!(head.headers.iter().collect::<Vec<_>>(), [content_type]);
    for piece in [&b"data: \xf0\x9f"[..], b"\x92\xa1\n\n", b"\xff\xfe\x00"] {
        chunk(&mut connection, piece).await;
        let mut got = Vec::new();
        while got.len() < piece.len() {
            got.extend(bench.server.bytes(7).await);
        }
        assert_eq!(got, piece);
    }
    connection.write("0\r\n\r\n").await;
    let end = WorkerFrame::End { job: 7, end: ResponseEnd::default() };
    assert_eq!(bench.server.frame().await, end);
}

const DONE: &[u8] = b"data: {}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn the_logical_end_of_a_stream_ends_the_job_though_the_connection_stays_open() {
    let mut bench = Bench::new(true).await;
    bench.server.request(7, true, r#"{"model":"m"}"#);
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    chunk(&mut connection, &[DONE, b"data: late\n\n"].concat()).await;
    let WorkerFrame::Head { job: 7, .. } = bench.server.frame().await else { panic!() };
    assert_eq!(bench.server.bytes(7).await, DONE);
    let end = WorkerFrame::End { job: 7, end: ResponseEnd::default() };
    assert_eq!(bench.server.frame().await, end);
}

#[tokio::test]
async fn after_the_logical_end_a_backends_connection_has_no_effect() {
    let mut bench = Bench::new(false).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    chunk(&mut connection, DONE).await;
    drop(connection);
    assert_eq!(bench.server.chunk(1).await.as_bytes(), DONE);
    assert_eq!(bench.server.complete().await.status_code, 200);
}

#[tokio::test]
async fn a_stream_as_text_is_cut_only_between_characters() {
    let mut bench = Bench::new(false).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    chunk(&mut connection, b"data: a\xf0\x9f").await;
    assert_eq!(bench.server.chunk(1).await, "data: a");
    chunk(&mut connection, b"\x92").await;
    chunk(&mut connection, b"\xa1\n\n\xe2").await;
    assert_eq!(bench.server.chunk(1).await, "💡\n\n");
    connection.write("0\r\n\r\n").await;
    assert_eq!(bench.server.chunk(1).await, "\u{fffd}");
    let complete = bench.server.complete().await;
    assert_eq!((complete.request_id.as_str(), complete.status_code), ("r-1", 200));
    assert_eq!(complete.headers["content-type"], "text/event-stream");
    assert!(!complete.headers.contains_key("transfer-encoding"));
    assert_eq!(complete.body.as_deref(), Some(""));
}

#[tokio::test]
async fn an_error_in_answer_to_a_stream_request_keeps_its_status_as_text() {
    let mut bench = Bench::new(false).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.json("429 Too Many", "retry-after: 7\r\n", r#"{"error":"slow down"}"#).await;
    let complete = bench.server.complete().await;
    assert_eq!(complete.status_code, 429);
    assert_eq!(complete.headers["retry-after"], "7");
    assert!(!complete.headers.contains_key("content-length"));
    assert_eq!(complete.body.as_deref(), Some(r#"{"error":"slow down"}"#));
}

#[tokio::test]
async fn an_older_server_is_sent_the_frames_that_it_knows() {
    let mut bench = Bench::of(Some(Version::Two), |_| {}).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.json("200 OK", "", "{}").await;
    for kind in [0x11, 0x12, 0x13] {
        let Frame::Binary(frame) = bench.server.next().await else { panic!() };
        assert_eq!(frame[0], kind);
    }
}

#[tokio::test]
async fn an_error_in_answer_to_a_stream_request_keeps_its_status_as_frames() {
    let mut bench = Bench::new(true).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.json("429 Too Many", "retry-after: 7\r\nx-a: 1\r\nx-a: 2\r\n", "no").await;
    let WorkerFrame::Head { head, .. } = bench.server.frame().await else { panic!() };
    assert_eq!(head.status_code, 429);
    let kept = [("content-length", "2"), ("retry-after", "7"), ("x-a", "1"), ("x-a", "2")];
    for (name, value) in kept {
        let pair = (name.as_bytes(), value.as_bytes());
        assert!(head.headers.iter().any(|header| header == pair), "{name}");
    }
    assert_eq!(bench.server.bytes(1).await, "no");
    assert!(matches!(bench.server.frame().await, WorkerFrame::End { .. }));
}

#[tokio::test]
async fn a_whole_answer_as_text_is_one_message() {
    let mut bench = Bench::new(false).await;
    bench.server.request_at("/v1/embeddings?a=b", 1, false, "{}");
    let (mut connection, request) = bench.raw.request().await;
    assert_eq!(request.line, "POST /v1/embeddings?a=b");
    connection.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    chunk(&mut connection, b"{\"caf\xc3").await;
    chunk(&mut connection, b"\xa9\":1}").await;
    connection.write("0\r\n\r\n").await;
    let complete = bench.server.complete().await;
    assert_eq!(complete.body.as_deref(), Some("{\"café\":1}"));
    assert!(complete.headers.is_empty(), "{:?}", complete.headers);
}

/// A slow answer is not taken for sleep. A quick one needs no word about it.
#[tokio::test]
async fn a_job_whose_answer_does_not_begin_soon_is_acknowledged_once() {
    let raw = RawServer::start().await;
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(config(vec![Lend::Http(backend(&raw))]), pipes);
    let mut server = servers.recv().await.unwrap();
    let wanted = RegisterAck { acknowledge: true, ..RegisterAck::default() };
    let register = server.register_with(wanted).await;
    assert!(register.acknowledges && register.link.is_some_and(|name| name.len() == 32));
    server.request(1, false, "{}");
    let (mut quick, _) = raw.request().await;
    quick.write("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    assert!(matches!(server.frame().await, WorkerFrame::Head { job: 1, .. }));
    assert!(matches!(server.frame().await, WorkerFrame::End { job: 1, .. }));
    server.request(2, false, "{}");
    let (mut slow, _) = raw.request().await;
    assert_eq!(server.frame().await, WorkerFrame::Accepted { job: 2 });
    slow.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    assert!(matches!(server.frame().await, WorkerFrame::Head { job: 2, .. }));
}
