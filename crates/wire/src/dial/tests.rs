//! Dialling, against far ends that are no good servers.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// A server of one connection that says this, whatever it hears, and tells what it heard first.
async fn saying(words: &'static [u8]) -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let read = stream.read(&mut heard).await.unwrap();
        stream.write_all(words).await.unwrap();
        stream.shutdown().await.unwrap();
        String::from_utf8_lossy(&heard[..read]).into_owned()
    });
    (port, heard)
}

/// Why a URL cannot be dialled, with the proxies of this environment.
async fn refused(url: &str, environment: &[(&str, String)]) -> String {
    let value = |name: &str| {
        environment.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
    };
    let (url, proxies) = (Url::parse(url).unwrap(), Proxies::read(value));
    let (headers, deadline) = (HeaderMap::new(), Duration::from_secs(10));
    let dialled = dial(Dial {
        url: &url,
        headers,
        subprotocols: &[],
        proxies: &proxies,
        pin: None,
        deadline,
    });
    base::error::chain(&dialled.await.unwrap_err())
}

#[tokio::test]
async fn a_server_elsewhere_is_dialled_by_the_proxy_and_by_its_name() {
    for (url, asked) in [
        ("wss://far.example/x", "CONNECT far.example:443 HTTP/1.1\r\n"),
        ("https://far.example:8443", "CONNECT far.example:8443 HTTP/1.1\r\n"),
        ("ws://[2001:db8::1]/x", "CONNECT [2001:db8::1]:80 HTTP/1.1\r\n"),
    ] {
        let (port, heard) = saying(b"HTTP/1.1 403 Forbidden\r\n\r\n").await;
        let proxy = format!("http://ann:hidden@127.0.0.1:{port}");
        let error = refused(url, &[("ALL_PROXY", proxy)]).await;
        assert!(error.contains("403") && error.contains("NO_PROXY"), "{error}");
        assert!(!error.contains("hidden"), "{error}");
        assert!(heard.await.unwrap().starts_with(asked), "{url}");
    }
}

#[tokio::test]
async fn the_link_runs_within_the_tunnel() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    let far = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        assert!(stream.read(&mut heard).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let read = stream.read(&mut heard).await.unwrap();
        stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&heard[..read]).into_owned()
    });
    let error = refused("ws://far.example/x", &[("HTTP_PROXY", proxy)]).await;
    assert!(error.contains("401"), "{error}");
    let asked = far.await.unwrap();
    assert!(asked.starts_with("GET /x HTTP/1.1\r\nhost: far.example\r\n"), "{asked}");
}

#[tokio::test]
async fn this_machine_is_dialled_directly_and_a_proxy_that_is_down_is_named() {
    let (port, heard) = saying(b"HTTP/1.1 401 Unauthorized\r\n\r\n").await;
    // Bound, and not listening: connections are refused.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let taken = taken.local_addr().unwrap();
    let nowhere = [("http_proxy", format!("http://{taken}"))];
    let error = refused(&format!("ws://127.0.0.1:{port}/x"), &nowhere).await;
    assert!(error.contains("401"), "{error}");
    assert!(heard.await.unwrap().starts_with("GET /x"));
    let error = refused("ws://far.example/", &nowhere).await;
    assert!(error.contains(&format!("the proxy {taken} that HTTP_PROXY names")), "{error}");
}

#[tokio::test]
async fn the_beginning_of_a_long_refusal_is_shown() {
    let long =
        format!("HTTP/1.1 403 Forbidden\r\n\r\nthis key is spent{}", " x".repeat(MAX_REFUSAL));
    let (port, _heard) = saying(long.leak().as_bytes()).await;
    let error = refused(&format!("ws://127.0.0.1:{port}"), &[]).await;
    assert!(error.contains("this key is spent x"), "{error}");
    assert!(error.len() < MAX_REFUSAL + 100, "{}", error.len());
}

#[tokio::test]
async fn tls_and_clear_text_are_told_apart() {
    let (port, _heard) = saying(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let error = refused(&format!("wss://127.0.0.1:{port}"), &[]).await;
    assert!(error.contains("speaks no TLS") && error.contains("http://"), "{error}");
    let (port, _heard) = saying(b"\x15\x03\x01\x00\x02\x02\x46").await;
    let error = refused(&format!("ws://127.0.0.1:{port}"), &[]).await;
    assert!(error.contains("speaks no HTTP") && error.contains("https://"), "{error}");
}

#[test]
fn a_refusal_says_what_stands_in_between() {
    let words =
        |status: u16, body: &str| refusal_words(StatusCode::from_u16(status).unwrap(), body);
    for (status, body) in [
        (426, "this path speaks WebSocket: connect with a WebSocket client"),
        (200, PAGE),
        (200, "{}"),
        (404, PAGE),
        (404, ""),
        (400, "only WebSocket version 13 over HTTP/1.1 is spoken here"),
        (403, PAGE),
    ] {
        let words = words(status, body);
        assert!(words.contains("a proxy in front of the server has to pass"), "{words}");
    }
    for body in [
        "<center>The plain HTTP request was sent to HTTPS port</center>",
        "Client sent an HTTP request to an HTTPS server.",
        r#"{"error":{"message":"this port speaks TLS: write https://"}}"#,
    ] {
        assert!(words(400, body).contains("wss://"), "{body}");
    }
    assert!(words(301, "https://other.example/").contains("sends to https://other.example/"));
    assert!(words(502, PAGE).contains("does the server run?"));
    assert_eq!(words(503, "draining"), "the server refused: 503 Service Unavailable draining");
    assert!(words(404, "no such room").contains("no such room"));
}
