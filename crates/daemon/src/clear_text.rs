//! Clients that speak HTTP in clear to a port of TLS, and the other way round.

use std::{io, sync::Once, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long a client that was refused may take to read the refusal and close the connection.
const LINGER: Duration = Duration::from_secs(2);

/// The first byte of a TLS handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;

/// The refusal. `wire::dial` recognises these words.
const WORDS: &str =
    "this port speaks TLS: write https:// instead of http://, or wss:// instead of ws://";

/// Whether a client of a port of TLS begins with a request in clear. Waits for its first byte, which stays unread; the
/// caller sets the deadline.
///
/// # Errors
/// When the connection breaks.
pub(crate) async fn is_clear(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    // A request begins with its method.
    Ok(read == 1 && first[0].is_ascii_uppercase())
}

/// Answers a request in clear, and closes the connection.
///
/// # Errors
/// When the connection breaks, or the client takes too long.
pub(crate) async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    let body = format!(
        r#"{{"error":{{"message":"{WORDS}","type":"invalid_request_error","param":null,"code":null}}}}"#
    );
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let refusing = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Read until the client leaves: a connection that is closed with unread bytes is reset, and the answer may be
        // lost.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        Ok(())
    };
    timeout(LINGER, refusing).await.unwrap_or_else(|late| Err(late.into()))
}

/// Warns once of clients that speak TLS to a port without it.
pub(crate) fn warn_of_tls(first: &[u8]) {
    static WARNED: Once = Once::new();
    if first.first() == Some(&HANDSHAKE) {
        WARNED.call_once(|| {
            tracing::warn!(
                "a client speaks TLS to this port, which has none: it must write http:// instead of \
                 https://, or the server needs --tls-cert and --tls-key"
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::Instant};

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (client, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_request_in_clear_is_told_from_a_handshake() {
        for (said, clear) in
            [("GET / HTTP/1.1\r\n", true), ("PRI * HTTP/2.0\r\n", true), ("\x16\x03\x01", false)]
        {
            let (mut client, server) = pair().await;
            client.write_all(said.as_bytes()).await.unwrap();
            assert_eq!(is_clear(&server).await.unwrap(), clear, "{said:?}");
        }
        let (client, server) = pair().await;
        drop(client);
        assert!(!is_clear(&server).await.unwrap(), "nothing was said");
    }

    #[tokio::test]
    async fn a_client_that_does_not_leave_is_closed() {
        let (mut client, server) = pair().await;
        let began = Instant::now();
        assert!(refuse(server).await.is_err());
        assert!(began.elapsed() < 2 * LINGER);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(WORDS), "{answer}");
    }
}
