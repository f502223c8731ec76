//! Events on one connection without TLS: early answers, surplus bytes, keeping it.

use std::time::Duration;

use ::http::Method;
use backend::{Answer, Backend, BackendConfig, BackendError, BackendRequest};
use bytes::Bytes;
use testkit::{RawConnection, RawServer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, pause},
};

/// More than the buffers of a connection take.
const LARGE: usize = 16 * 1024 * 1024;

async fn listening() -> (TcpListener, Backend) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, Backend::http(&BackendConfig::new(url)).unwrap())
}

fn ask(body: impl Into<Bytes>) -> BackendRequest {
    let body = vec![body.into()];
    BackendRequest { path_and_query: "/v1/x".to_owned(), body, ..BackendRequest::default() }
}

async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

async fn read_all(mut answer: Answer) -> Result<Vec<u8>, BackendError> {
    let mut all = Vec::new();
    while let Some(piece) = answer.body.next().await {
        all.extend(piece?);
    }
    Ok(all)
}

#[tokio::test]
async fn an_answer_is_read_before_the_request_is_written() {
    let (listener, backend) = listening().await;
    let serving = async {
        let (mut refusing, _) = listener.accept().await.unwrap();
        read_head(&mut refusing).await;
        refusing.write_all(b"HTTP/1.1 413 Big\r\ncontent-length: 2\r\n\r\nno").await.unwrap();
        // The rest of the request is on no connection that the next one could take.
        let (mut next, _) = listener.accept().await.unwrap();
        read_head(&mut next).await;
        next.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    };
    let asking = async {
        let refused = backend.send(ask(vec![b'x'; LARGE])).await.unwrap();
        assert_eq!(refused.status, 413);
        assert_eq!(read_all(refused).await.unwrap(), b"no");
        assert_eq!(backend.send(ask("")).await.unwrap().status, 200);
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn a_large_request_is_written_while_its_answer_is_read() {
    let (listener, backend) = listening().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n";
        stream.write_all(head).await.unwrap();
        let mut body = vec![0; LARGE];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(b"1\r\nc\r\n0\r\n\r\n").await.unwrap();
        body
    };
    let body: Vec<u8> = (0..LARGE).map(|at| at.to_be_bytes()[6]).collect();
    let asking = async { read_all(backend.send(ask(body.clone())).await.unwrap()).await };
    let (read, answer) = tokio::join!(serving, asking);
    assert_eq!(answer.unwrap(), b"abc");
    assert!(read == body);
}

/// Asks, over a new connection, which is given back. `surplus` comes behind the answer.
async fn answered_anew(server: &RawServer, backend: &Backend, surplus: &str) -> RawConnection {
    let serving = async {
        let (mut connection, _) = server.request().await;
        connection
            .write(format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwell{surplus}"))
            .await;
        connection
    };
    let asking = async { read_all(backend.send(ask("x")).await.unwrap()).await.unwrap() };
    let (connection, answer) = tokio::join!(serving, asking);
    assert_eq!(answer, b"well");
    connection
}

#[tokio::test]
async fn bytes_behind_an_answer_answer_nothing() {
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    let _first = answered_anew(&server, &backend, smuggled).await;
    let mut second = answered_anew(&server, &backend, "").await;
    // The same a moment later, when the connection is kept.
    second.write(smuggled).await;
    // The runtime that has brought another connection has noted all that came before.
    let to = ("127.0.0.1", server.port);
    let (near, _far) = tokio::join!(TcpStream::connect(to), server.accept());
    near.unwrap();
    answered_anew(&server, &backend, "").await;
}

#[tokio::test]
async fn a_connection_is_free_when_its_answer_is_here_though_nobody_has_read_it() {
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    let serving = async {
        let (mut connection, _) = server.request().await;
        connection.json("200 OK", "", "one").await;
        connection.request().await;
        connection.write("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(connection.request().await.line, "HEAD /v1/x");
        connection.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await;
        connection.request().await;
        connection.json("200 OK", "", "four").await;
    };
    let asking = async {
        let first = backend.send(ask("1")).await.unwrap();
        assert_eq!(read_all(backend.send(ask("2")).await.unwrap()).await.unwrap(), b"");
        let head = backend.send(BackendRequest { method: Method::HEAD, ..ask("") }).await.unwrap();
        assert_eq!(head.headers["content-length"], "9");
        assert_eq!(read_all(head).await.unwrap(), b"");
        let mut fourth = backend.send(ask("4")).await.unwrap();
        let piece = fourth.body.next().await.unwrap().unwrap();
        let space = piece.try_into_mut().unwrap().capacity();
        assert_eq!(space, "four".len(), "a piece holds no more than itself");
        assert_eq!(read_all(first).await.unwrap(), b"one");
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn an_unused_connection_is_closed_after_four_seconds() {
    let server = RawServer::start().await;
    let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
    let serving = async {
        let (mut connection, _) = server.request().await;
        connection.json("200 OK", "", "{}").await;
        connection
    };
    let (mut connection, answer) = tokio::join!(serving, backend.send(ask("1")));
    read_all(answer.unwrap()).await.unwrap();
    pause();
    let kept = Instant::now();
    connection.closed().await;
    let after = kept.elapsed();
    assert!(after >= Duration::from_secs(3) && after < Duration::from_secs(5), "{after:?}");
}

#[tokio::test]
async fn what_is_wrong_with_an_answer_is_told() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101));
    let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(64 * 1024));
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    for (answer, words) in [
        (many.as_str(), "more than 100 header lines"),
        (&long, "longer than 65536 bytes"),
        (both, "both content-length and transfer-encoding"),
        ("SSH-2.0-OpenSSH\r\n", "speaks no HTTP"),
        ("", "closed before its answer began"),
    ] {
        let server = RawServer::start().await;
        let backend = Backend::http(&BackendConfig::new(server.url())).unwrap();
        let serving = async {
            let (mut connection, _) = server.request().await;
            connection.write(answer).await;
        };
        let ((), told) = tokio::join!(serving, backend.send(ask("1")));
        let error = told.unwrap_err();
        let is_broken = matches!(error, BackendError::Broke { .. });
        assert!(is_broken && error.to_string().contains(words), "{error}");
    }
}
