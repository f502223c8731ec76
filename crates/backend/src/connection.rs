//! A connection that knows whether the request it lost may be sent again.
//!
//! A server may close an idle connection while the next request is on its way. The client then sees
//! the connection end without an answer, as if the request had killed the server. Two things
//! together indicate the first case: the connection has answered before, and no byte has come since
//! the request began.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// No request was answered yet.
const FRESH: u8 = 0;
/// The head of an answer has come. The next bytes that are written are a new request.
const ANSWERED: u8 = 1;
/// A new request is being written, or is written, and nothing has come back.
const ASKED: u8 = 2;
/// Bytes have come back.
const HEARD: u8 = 3;

/// The progress of a connection, shared by the connection and the requests on it.
///
/// One request at a time uses a connection, so its steps follow each other, and relaxed atomics
/// suffice: the channel that brings the answer or the error orders the steps between threads. Only
/// the mark of an answer without a body may come a moment late, when the next request is written
/// already. That request still counts as not the first.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<AtomicU8>);

impl Progress {
    fn fresh() -> Self {
        Self(Arc::new(AtomicU8::new(FRESH)))
    }

    /// The head of an answer came.
    pub(crate) fn answered(&self) {
        self.0.store(ANSWERED, Relaxed);
    }

    /// Whether the request that failed on this connection probably met the end of an idle
    /// connection: it was not the first one, and no byte of its answer came.
    pub(crate) fn was_idle(&self) -> bool {
        matches!(self.0.load(Relaxed), ANSWERED | ASKED)
    }

    fn writes(&self) {
        self.step(ANSWERED, ASKED);
    }

    fn has_read(&self) {
        self.step(ASKED, HEARD);
    }

    fn step(&self, from: u8, to: u8) {
        // In any other state the step does not apply.
        let _ = self.0.compare_exchange(from, to, Relaxed, Relaxed);
    }
}

/// A stream that notes its progress.
#[derive(Debug)]
pub(crate) struct TrackedStream<S> {
    stream: S,
    progress: Progress,
}

impl<S> TrackedStream<S> {
    /// A stream that is about to be used.
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, progress: Progress::fresh() }
    }
}

/// The progress travels as an extra of the connection, so that every answer and error carries it.
impl<S: Connection> Connection for TrackedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.progress.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.progress.has_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.progress.writes();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.progress.writes();
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// A connection with a server's end that has answered once.
    async fn used() -> (TrackedStream<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (ours, mut theirs) = duplex(64);
        let mut ours = TrackedStream::new(ours);
        ours.write_all(b"one").await.unwrap();
        theirs.write_all(b"head").await.unwrap();
        ours.read_exact(&mut [0; 4]).await.unwrap();
        assert!(!ours.progress.was_idle(), "fresh until a head is here");
        ours.progress.answered();
        (ours, theirs)
    }

    #[tokio::test]
    async fn the_rest_of_an_answer_is_not_the_next_one() {
        let (mut ours, mut theirs) = used().await;
        theirs.write_all(b"body").await.unwrap();
        ours.read_exact(&mut [0; 4]).await.unwrap();
        ours.write_all(b"two").await.unwrap();
        drop(theirs);
        assert_eq!(ours.read(&mut [0; 8]).await.unwrap_or(0), 0);
        assert!(ours.progress.was_idle());
    }

    #[tokio::test]
    async fn a_byte_of_the_answer_counts_although_more_is_written() {
        let (mut ours, mut theirs) = used().await;
        ours.write_all(b"tw").await.unwrap();
        theirs.write_all(b"H").await.unwrap();
        ours.read_exact(&mut [0; 1]).await.unwrap();
        ours.write_all(b"o").await.unwrap();
        assert!(!ours.progress.was_idle());
    }
}
