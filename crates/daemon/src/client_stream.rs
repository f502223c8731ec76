//! The byte stream of a client: its first bytes are read again, and writes have a deadline.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The stream of a client whose first bytes were read to see which HTTP it speaks. They are read again in one
/// piece, so that a request that came in one packet is parsed from one buffer.
///
/// A write that makes no progress for `patience` fails. The timer exists only while a write waits.
pub(crate) struct ClientStream<S> {
    first: Vec<u8>,
    /// How many of the first bytes were read again.
    at: usize,
    stream: S,
    /// How long a write may wait without any progress.
    patience: Duration,
    /// The deadline. It runs from a write that has to wait, until a write makes progress.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> ClientStream<S> {
    pub(crate) fn new(first: Vec<u8>, stream: S, patience: Duration) -> Self {
        Self { first, at: 0, stream, patience, blocked: None }
    }

    /// Passes on the result of a write, or an error if it has waited for too long.
    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if write.is_ready() {
            self.blocked = None;
            return write;
        }
        let patience = self.patience;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(blocked.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = &this.first[this.at..];
        if rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        let taken = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..taken]);
        this.at += taken;
        if this.at == this.first.len() {
            // Freed at once: a connection may live for hours.
            (this.first, this.at) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let write = Pin::new(&mut this.stream).poll_write_vectored(cx, slices);
        this.written(cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flush = Pin::new(&mut this.stream).poll_flush(cx);
        this.written(cx, flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shutdown = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.written(cx, shutdown)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::Instant,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn guarded() -> (ClientStream<DuplexStream>, DuplexStream) {
        let (near, far) = duplex(64);
        (ClientStream::new(Vec::new(), near, PATIENCE), far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_disconnected_and_a_slow_one_is_not() {
        let (mut near, mut far) = guarded();
        let slow = tokio::spawn(async move {
            let mut bytes = [0; 64];
            for _ in 0..10 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
                far.read_exact(&mut bytes).await.unwrap();
            }
            far
        });
        near.write_all(&[0; 640]).await.unwrap();
        let _far = slow.await.unwrap();
        let began = Instant::now();
        let error = near.write_all(&[0; 65]).await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, PATIENCE));
    }
}
