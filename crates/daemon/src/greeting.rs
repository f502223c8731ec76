//! Detects which version of HTTP a client speaks.
//!
//! The connection reads the same bytes again, in one piece, so that a request that came in one packet is
//! parsed from one buffer.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// The first bytes of HTTP/2 (RFC 9113 section 3.4). Anything else is HTTP/1.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of the first read.
const FIRST_READ: usize = 4 * 1024;

/// The version that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2, over TLS or with prior knowledge.
    Http2,
}

/// Reads until the version is known, and returns the stream as if nothing had been read.
///
/// # Errors
/// When the stream breaks, or its own deadline passes. A client that leaves without a byte counts as HTTP/1, which ends at once.
pub(crate) async fn version<S>(mut stream: S) -> io::Result<(Version, Reread<S>)>
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
    Ok((version, Reread { said, at: 0, stream }))
}

/// A stream whose first bytes are read a second time.
#[derive(Debug)]
pub(crate) struct Reread<S> {
    said: Vec<u8>,
    at: usize,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Reread<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let again = &this.said[this.at..];
        if again.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let taken = again.len().min(buf.remaining());
        buf.put_slice(&again[..taken]);
        this.at += taken;
        if this.at == this.said.len() {
            // A connection may live for hours; this buffer need not.
            (this.said, this.at) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Reread<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    async fn detected(said: &[u8]) -> Version {
        let (mut client, server) = duplex(said.len().max(1));
        client.write_all(said).await.unwrap();
        drop(client);
        let (version, mut again) = version(server).await.unwrap();
        let mut all = Vec::new();
        again.read_to_end(&mut all).await.unwrap();
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
        let (mut client, server) = duplex(1);
        let writing = tokio::spawn(async move {
            for byte in PREFACE {
                client.write_all(&[*byte]).await.unwrap();
            }
        });
        assert_eq!(version(server).await.unwrap().0, Version::Http2);
        writing.await.unwrap();
    }
}
