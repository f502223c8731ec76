//! A deadline for writes, for clients that do not read.

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

/// A byte stream with a deadline for writes. The timer exists only while a write waits.
pub(crate) struct WriteDeadline<S> {
    stream: S,
    /// How long a write may wait without any progress.
    patience: Duration,
    /// Runs from the first write that had to wait to the next that did not.
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteDeadline<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, blocked: None }
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

impl<S: AsyncRead + Unpin> AsyncRead for WriteDeadline<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteDeadline<S> {
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

    fn guarded() -> (WriteDeadline<DuplexStream>, DuplexStream) {
        let (near, far) = duplex(64);
        (WriteDeadline::new(near, PATIENCE), far)
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
