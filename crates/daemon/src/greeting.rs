//! Detects which version of HTTP a client speaks.
//!
//! [`ClientStream`](crate::client_stream::ClientStream) reads the same bytes again.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The first bytes of HTTP/2 (RFC 9113 section 3.4). Anything else is HTTP/1.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of the buffer for the first bytes, in bytes.
const FIRST_READ: usize = 4 * 1024;

/// The version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2, over TLS or in clear (with prior knowledge).
    Http2,
}

/// Reads until the version is known, and returns what was read.
///
/// # Errors
/// When the stream breaks. A client that leaves without a byte counts as one of HTTP/1, whose connection then ends at
/// once.
pub(crate) async fn version<S>(stream: &mut S) -> io::Result<(Version, Vec<u8>)>
where
    S: AsyncRead + Unpin,
{
    let mut said = Vec::with_capacity(FIRST_READ);
    let version = loop {
        let read = stream.read_buf(&mut said).await?;
        let known = said.len().min(PREFACE.len());
        if read == 0 || said[..known] != PREFACE[..known] {
            break Version::Http1;
        }
        if known == PREFACE.len() {
            break Version::Http2;
        }
    };
    Ok((version, said))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;
    use crate::client_stream::ClientStream;

    async fn detected(said: &[u8]) -> Version {
        let (mut client, mut server) = duplex(said.len().max(1));
        client.write_all(said).await.unwrap();
        drop(client);
        let (version, first) = version(&mut server).await.unwrap();
        let mut stream = ClientStream::new(first, server, Duration::MAX);
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, said, "nothing is lost");
        version
    }

    #[tokio::test]
    async fn versions_are_told_apart_without_losing_bytes() {
        assert_eq!(detected(b"GET / HTTP/1.1\r\n\r\n").await, Version::Http1);
        assert_eq!(detected(&[&PREFACE[..], b"settings"].concat()).await, Version::Http2);
        assert_eq!(detected(b"PRI * HTTP/1.1\r\n\r\n").await, Version::Http1);
        assert_eq!(detected(b"PRI * HT").await, Version::Http1);
        assert_eq!(detected(b"").await, Version::Http1);
        assert_eq!(detected(&[b'x'; 10_000]).await, Version::Http1);
    }

    #[tokio::test]
    async fn a_preface_may_come_byte_by_byte() {
        let (mut client, mut server) = duplex(1);
        let writing = tokio::spawn(async move {
            for byte in PREFACE {
                client.write_all(&[*byte]).await.unwrap();
            }
        });
        assert_eq!(version(&mut server).await.unwrap().0, Version::Http2);
        writing.await.unwrap();
    }
}
