//! Model servers over HTTP, with a server of raw bytes at the other end.

use std::{sync::Arc, time::Duration};

use ::http::HeaderValue;
use backend::{Backend, BackendConfig, BackendError, BackendRequest, Phase, Timeouts};
use bytes::Bytes;
use testkit::{DEADLINE, RawServer};
use tokio::time::timeout;

fn backend(url: &str) -> Backend {
    Backend::http(&BackendConfig::new(url)).unwrap()
}

fn with_timeouts(url: &str, timeouts: Timeouts) -> Backend {
    Backend::http(&BackendConfig { timeouts, ..BackendConfig::new(url) }).unwrap()
}

fn ask(path: &str) -> BackendRequest {
    let body = vec![Bytes::from_static(b"{\"a\":"), Bytes::from_static(b"1}")];
    BackendRequest { path_and_query: path.to_owned(), body, ..BackendRequest::default() }
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

#[tokio::test]
async fn a_request_keeps_its_path_query_body_and_headers() {
    let server = RawServer::start().await;
    let config = BackendConfig {
        api_key: Some("own".into()),
        ..BackendConfig::new(format!("{}/gpu", server.url()))
    };
    let backend = Backend::http(&config).unwrap();
    let mut ask = ask("/v1/embeddings?beta=true");
    ask.headers.insert("authorization", HeaderValue::from_static("Bearer client"));
    ask.headers.insert("x-foo", HeaderValue::from_static("2"));
    let answering = async {
        let (mut connection, request) = server.request().await;
        connection.json("200 OK", "connection: x-hop\r\nx-hop: 1\r\nx-back: 1\r\n", "{}").await;
        request
    };
    let (request, answer) = tokio::join!(answering, backend.send(ask));
    assert_eq!(request.line, "POST /gpu/v1/embeddings?beta=true");
    assert_eq!(request.body, b"{\"a\":1}");
    assert!(request.headers.contains(&"authorization: bearer own".to_owned()));
    assert!(request.headers.contains(&"x-foo: 2".to_owned()));
    assert!(!request.headers.iter().any(|line| line.contains("client")));
    let mut answer = answer.unwrap();
    assert_eq!(answer.headers["x-back"], "1");
    assert!(!answer.headers.contains_key("x-hop"));
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "{}");
    assert!(answer.body.next().await.is_none());
}

#[tokio::test]
async fn a_refused_request_is_sent_again_if_another_one_has_read_the_new_key() {
    let server = RawServer::start().await;
    let file = std::env::temp_dir().join(format!("warren-new-key-{}", std::process::id()));
    std::fs::write(&file, "old").unwrap();
    let config = BackendConfig {
        api_key: Some("old".into()),
        key_file: Some(file.clone()),
        ..BackendConfig::new(server.url())
    };
    let backend = Arc::new(Backend::http(&config).unwrap());
    let asking = Arc::clone(&backend);
    let asked = tokio::spawn(async move { asking.send(ask("/v1/x")).await });
    let (mut connection, request) = server.request().await;
    assert!(request.headers.contains(&"authorization: bearer old".to_owned()));
    std::fs::write(&file, "new").unwrap();
    // As another refused request does, or the worker when it asks for the models.
    backend.read_key_again().await;
    connection.json("401 Unauthorized", "connection: close\r\n", "{}").await;
    // The place of the key is not known yet, so the other one is tried first.
    let (mut connection, _) = server.request().await;
    connection.json("401 Unauthorized", "connection: close\r\n", "{}").await;
    let (mut connection, request) = timeout(DEADLINE, server.request()).await.unwrap();
    assert!(request.headers.contains(&"authorization: bearer new".to_owned()));
    connection.json("200 OK", "", "{}").await;
    assert_eq!(asked.await.unwrap().unwrap().status, 200);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn each_piece_arrives_before_the_next_is_sent() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let asked = tokio::spawn(async move { backend.send(ask("/v1/x")).await });
    let (mut connection, _) = server.request().await;
    connection.write(STREAM_HEAD).await;
    let mut answer = asked.await.unwrap().unwrap();
    // Half a character, half an event, bytes that are no text: all as they come.
    for piece in [&b"data: \xf0\x9f"[..], b"\x92\xa1\n", b"\n\xff\x00"] {
        connection.write(format!("{:x}\r\n", piece.len())).await;
        connection.write(piece).await;
        connection.write("\r\n").await;
        let mut got = Vec::new();
        while got.len() < piece.len() {
            got.extend(timeout(DEADLINE, answer.body.next()).await.unwrap().unwrap().unwrap());
        }
        assert_eq!(got, piece);
    }
    connection.write("0\r\n\r\n").await;
    assert!(answer.body.next().await.is_none());
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let asked = tokio::spawn(async move { (backend.send(ask("/v1/x")).await, backend) });
    let (mut connection, _) = server.request().await;
    connection.write(STREAM_HEAD).await;
    connection.write("3\r\nabc\r\n").await;
    let (answer, _backend) = asked.await.unwrap();
    let mut answer = answer.unwrap();
    assert_eq!(answer.body.next().await.unwrap().unwrap(), "abc");
    drop(answer);
    connection.closed().await;
}

#[tokio::test]
async fn dropping_the_wait_for_the_head_closes_the_connection() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let asking = tokio::spawn(async move { backend.send(ask("/v1/x")).await });
    let (mut connection, _) = server.request().await;
    asking.abort();
    connection.closed().await;
}

#[tokio::test]
async fn nobody_listening_is_said_with_the_address() {
    let server = RawServer::start().await;
    let url = server.url();
    drop(server);
    let error = backend(&url).send(ask("/v1/x")).await.unwrap_err();
    assert!(matches!(error, BackendError::Unreachable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&url) && text.contains("is the model server running"), "{text}");
}

#[tokio::test]
async fn a_backend_that_never_begins_is_given_up() {
    let server = RawServer::start().await;
    let timeouts = Timeouts { first_byte: Duration::from_millis(50), ..Timeouts::default() };
    let backend = with_timeouts(&server.url(), timeouts);
    let (connection, answer) = tokio::join!(server.request(), backend.send(ask("/v1/x")));
    let error = answer.unwrap_err();
    assert!(matches!(error, BackendError::Timeout { phase: Phase::FirstByte, .. }), "{error:?}");
    let (mut connection, _) = connection;
    connection.closed().await;
}

#[tokio::test]
async fn a_backend_that_falls_silent_is_given_up() {
    let server = RawServer::start().await;
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..Timeouts::default() };
    let backend = with_timeouts(&server.url(), timeouts);
    let answering = async {
        let (mut connection, _) = server.request().await;
        connection.write(STREAM_HEAD).await;
        connection
    };
    let (_connection, answer) = tokio::join!(answering, backend.send(ask("/v1/x")));
    let error = answer.unwrap().body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, BackendError::Timeout { phase: Phase::Idle, .. }), "{error:?}");
}

#[tokio::test]
async fn a_backend_that_dies_in_the_middle_is_an_error_and_not_an_end() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let answering = async {
        let (mut connection, _) = server.request().await;
        connection.write(STREAM_HEAD).await;
        connection.write("3\r\nabc\r\n").await;
    };
    let ((), answer) = tokio::join!(answering, backend.send(ask("/v1/x")));
    let mut body = answer.unwrap().body;
    assert_eq!(body.next().await.unwrap().unwrap(), "abc");
    let error = body.next().await.unwrap().unwrap_err();
    assert!(matches!(error, BackendError::Broke { .. }), "{error:?}");
}

#[tokio::test]
async fn connections_are_used_again_and_a_closed_one_costs_nothing() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let twice = async {
        let (mut connection, _) = server.request().await;
        connection.json("200 OK", "", "{}").await;
        connection.request().await;
        connection.json("200 OK", "", "{}").await;
        drop(connection);
        let (mut connection, _) = server.request().await;
        connection.json("200 OK", "", "{}").await;
    };
    let asks = async {
        for _ in 0..3 {
            let mut answer = backend.send(ask("/v1/x")).await.unwrap();
            while let Some(piece) = answer.body.next().await {
                piece.unwrap();
            }
        }
    };
    tokio::join!(twice, asks);
}

#[tokio::test]
async fn a_path_that_is_none_is_refused_unsent() {
    let error = backend("http://127.0.0.1:1").send(ask("v1 x")).await.unwrap_err();
    assert!(matches!(error, BackendError::BadAsk(_)), "{error:?}");
}

#[tokio::test]
async fn only_the_address_that_may_be_connected_to_is() {
    let server = RawServer::start().await;
    let localhost = Some(std::net::Ipv4Addr::LOCALHOST.into());
    let url = format!("http://host.invalid:{}", server.port);
    let config = BackendConfig { address: localhost, ..BackendConfig::new(url) };
    let backend = Backend::http(&config).unwrap();
    let answering = async {
        let (mut connection, request) = server.request().await;
        connection.json("200 OK", "", "{}").await;
        request
    };
    let (request, answer) = tokio::join!(answering, backend.send(ask("/v1/x")));
    assert_eq!(answer.unwrap().status, 200);
    let host = format!("host: host.invalid:{}", server.port);
    assert!(request.headers.contains(&host), "{:?}", request.headers);
    let written = BackendConfig { address: localhost, ..BackendConfig::new("http://127.0.0.2:1") };
    let error = Backend::http(&written).unwrap_err().to_string();
    assert!(error.contains("another address"), "{error}");
    let same = BackendConfig { address: localhost, ..BackendConfig::new(server.url()) };
    assert!(Backend::http(&same).is_ok());
}
