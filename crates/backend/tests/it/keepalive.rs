//! Connections that the server closes while a request is on its way.

use std::time::Duration;

use backend::{Answer, Backend, BackendConfig, BackendError, BackendRequest, Phase, Timeouts};
use bytes::Bytes;
use testkit::{DEADLINE, RawConnection, RawRequest, RawServer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

fn backend(url: &str) -> Backend {
    Backend::http(&BackendConfig::new(url)).unwrap()
}

fn ask(body: impl Into<Bytes>) -> BackendRequest {
    let body = body.into();
    let half = body.len() / 2;
    let body = vec![body.slice(..half), body.slice(half..)];
    BackendRequest { path_and_query: "/v1/x".to_owned(), body, ..BackendRequest::default() }
}

async fn read_all(mut answer: Answer) -> Result<Vec<u8>, BackendError> {
    let mut all = Vec::new();
    while let Some(piece) = answer.body.next().await {
        all.extend(piece?);
    }
    Ok(all)
}

/// A connection that has answered once and is idle.
async fn used(server: &RawServer, backend: &Backend) -> RawConnection {
    let answering = async {
        let (mut connection, _) = server.request().await;
        connection.json("200 OK", "", "first").await;
        connection
    };
    let asking = async { read_all(backend.send(ask("first")).await.unwrap()).await };
    let (connection, answer) = tokio::join!(answering, asking);
    assert_eq!(answer.unwrap(), b"first");
    connection
}

/// Asks with `body`; the request is read on a used connection, which then closes, and answered on
/// the next one.
async fn closed_then_answered(body: Bytes) -> (RawRequest, RawRequest, Vec<u8>) {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let mut idle = used(&server, &backend).await;
    let serving = async {
        let lost = idle.request().await;
        drop(idle);
        let (mut connection, again) = server.request().await;
        connection.json("200 OK", "", "second").await;
        (lost, again)
    };
    let asking = async { read_all(backend.send(ask(body)).await.unwrap()).await };
    let ((lost, again), answer) = tokio::join!(serving, asking);
    (lost, again, answer.unwrap())
}

#[tokio::test]
async fn a_request_that_meets_the_end_of_an_idle_connection_is_sent_again() {
    let (lost, again, answer) = closed_then_answered(Bytes::from_static(b"{\"a\":1}")).await;
    assert_eq!(answer, b"second");
    assert_eq!((lost.line, lost.headers), (again.line, again.headers));
    assert_eq!(lost.body, b"{\"a\":1}");
    assert_eq!(again.body, lost.body);
}

#[tokio::test]
async fn a_large_body_is_sent_again_whole() {
    let body: Vec<u8> = (0..5 * 1024 * 1024_u32).map(|at| at.to_be_bytes()[1]).collect();
    let (lost, again, answer) = closed_then_answered(body.clone().into()).await;
    assert_eq!(answer, b"second");
    assert!(lost.body == body && again.body == body);
}

/// The end of the connection is a reset here, and the sending fails as well as the reading.
#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_of_a_large_body_is_an_idle_one_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = backend(&format!("http://{}", listener.local_addr().unwrap()));
    let body = vec![b'x'; 5 * 1024 * 1024];
    let serving = async {
        let (mut idle, _) = listener.accept().await.unwrap();
        read_body(&mut idle, "first".len()).await;
        idle.write_all(ANSWER).await.unwrap();
        // What has come is not read, so that the close is a reset.
        idle.readable().await.unwrap();
        drop(idle);
        let (mut fresh, _) = listener.accept().await.unwrap();
        let again = read_body(&mut fresh, body.len()).await;
        fresh.write_all(ANSWER).await.unwrap();
        again
    };
    let asking = async {
        read_all(backend.send(ask("first")).await.unwrap()).await.unwrap();
        read_all(backend.send(ask(body.clone())).await.unwrap()).await.unwrap()
    };
    let (again, answer) = timeout(DEADLINE, async { tokio::join!(serving, asking) }).await.unwrap();
    assert_eq!(answer, b"well");
    assert!(again == body);
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell";

/// The body of one request, whose length is known.
async fn read_body(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    body
}

/// Asks twice: the first ask breaks before its head, the second is answered.
async fn breaks_then_is_well(backend: &Backend) {
    let error = backend.send(ask("broken")).await.unwrap_err();
    assert!(matches!(error, BackendError::Broke { .. }), "{error:?}");
    assert_eq!(read_all(backend.send(ask("next")).await.unwrap()).await.unwrap(), b"well");
}

/// Takes the next connection and answers on it. What it asks is the second ask, not the first one
/// again.
async fn hears_the_next(server: &RawServer) {
    let (mut connection, request) = server.request().await;
    connection.json("200 OK", "", "well").await;
    assert_eq!(request.body, b"next");
}

#[tokio::test]
async fn a_fresh_connection_without_an_answer_is_not_tried_again() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let serving = async {
        drop(server.request().await);
        hears_the_next(&server).await;
    };
    tokio::join!(serving, breaks_then_is_well(&backend));
}

#[tokio::test]
async fn the_second_try_is_the_last() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let mut idle = used(&server, &backend).await;
    let serving = async {
        idle.request().await;
        drop(idle);
        let (second, request) = server.request().await;
        assert_eq!(request.body, b"broken");
        drop(second);
        hears_the_next(&server).await;
    };
    tokio::join!(serving, breaks_then_is_well(&backend));
}

/// Half a status line is an answer that broke off, not an idle connection that closed.
#[tokio::test]
async fn a_byte_of_the_answer_is_too_late_for_a_second_try() {
    for begun in ["H", "HTTP/1.1 200 OK\r\ncontent-", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let server = RawServer::start().await;
        let backend = backend(&server.url());
        let mut idle = used(&server, &backend).await;
        let serving = async {
            idle.request().await;
            idle.write(begun).await;
            drop(idle);
            hears_the_next(&server).await;
        };
        tokio::join!(serving, breaks_then_is_well(&backend));
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_on_a_used_connection_is_an_error() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let mut idle = used(&server, &backend).await;
    let serving = async {
        idle.request().await;
        idle.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
        drop(idle);
        hears_the_next(&server).await;
    };
    let asking = async {
        let error = read_all(backend.send(ask("cut")).await.unwrap()).await.unwrap_err();
        assert!(matches!(error, BackendError::Broke { .. }), "{error:?}");
        backend.send(ask("next")).await.unwrap()
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn the_second_try_has_no_deadline_of_its_own() {
    let server = RawServer::start().await;
    let timeouts = Timeouts { first_byte: Duration::from_millis(200), ..Timeouts::default() };
    let config = BackendConfig { timeouts, ..BackendConfig::new(server.url()) };
    let backend = Backend::http(&config).unwrap();
    let mut idle = used(&server, &backend).await;
    let serving = async {
        idle.request().await;
        drop(idle);
        let (mut connection, _) = server.request().await;
        connection.closed().await;
    };
    let ((), answer) = tokio::join!(serving, backend.send(ask("lost")));
    let error = answer.unwrap_err();
    assert!(matches!(error, BackendError::Timeout { phase: Phase::FirstByte, .. }), "{error:?}");
}

#[tokio::test]
async fn leaving_during_the_second_try_closes_its_connection() {
    let server = RawServer::start().await;
    let backend = backend(&server.url());
    let mut idle = used(&server, &backend).await;
    let asking = tokio::spawn(async move { backend.send(ask("lost")).await });
    idle.request().await;
    drop(idle);
    let (mut connection, _) = server.request().await;
    asking.abort();
    connection.closed().await;
}
