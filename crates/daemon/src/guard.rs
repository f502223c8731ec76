//! A connection that does not wait for ever: neither for the first bytes of a client that says
//! nothing, nor for one that does not read what is written to it.

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

/// How long a client may take until it is known which version of HTTP it speaks.
const GREETING: Duration = Duration::from_secs(10);

/// What a client of HTTP/2 says first. Anything else is HTTP/1.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A byte stream with deadlines for its beginning and for writes. A timer runs only while one of
/// them is waited for.
pub(crate) struct Guarded<S> {
    stream: S,
    greeting: Option<Greeting>,
    /// How long a write may wait without any progress.
    patience: Duration,
    /// Runs from the first write that had to wait to the next that did not.
    blocked: Option<Pin<Box<Sleep>>>,
}

/// The bytes before the version is known.
struct Greeting {
    matched: usize,
    until: Pin<Box<Sleep>>,
}

impl<S> Guarded<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        let greeting = Greeting { matched: 0, until: Box::pin(sleep(GREETING)) };
        Self { stream, greeting: Some(greeting), patience, blocked: None }
    }

    /// What a write came to; an error, when it has been waiting for too long.
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
        Poll::Ready(Err(late("the client does not read")))
    }
}

impl Greeting {
    /// Whether the version is still unknown after these bytes.
    fn goes_on(&mut self, bytes: &[u8]) -> bool {
        let known = &PREFACE[self.matched..];
        let matches =
            !bytes.is_empty() && known.starts_with(&bytes[..bytes.len().min(known.len())]);
        self.matched = (self.matched + bytes.len()).min(PREFACE.len());
        matches && self.matched < PREFACE.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let Some(greeting) = &mut this.greeting else { return read };
        if read.is_pending() {
            ready!(greeting.until.as_mut().poll(cx));
            return Poll::Ready(Err(late("the client says nothing")));
        }
        if !greeting.goes_on(&buf.filled()[before..]) {
            this.greeting = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
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

fn late(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        time::{Instant, timeout},
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);
    const LONG: Duration = Duration::from_secs(3_600);

    fn guarded() -> (Guarded<DuplexStream>, DuplexStream) {
        let (near, far) = duplex(64);
        (Guarded::new(near, PATIENCE), far)
    }

    /// How long a server that reads on waits after a client has said this.
    async fn given_up_after(said: &[u8]) -> Option<Duration> {
        let (mut near, mut far) = guarded();
        far.write_all(said).await.unwrap();
        let began = Instant::now();
        let reading = async {
            let mut bytes = [0; 7];
            while near.read(&mut bytes).await.is_ok() {}
        };
        timeout(LONG, reading).await.ok().map(|()| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_says_nothing_or_half_a_preface_is_given_up() {
        for said in [&b""[..], b"P", b"PRI * HT", &PREFACE[..23]] {
            assert_eq!(given_up_after(said).await, Some(GREETING), "{said:?}");
        }
        for said in [&b"G"[..], b"POST /", b"PRI * HTTP/1", &PREFACE[..]] {
            assert_eq!(given_up_after(said).await, None, "{said:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_given_up_and_a_slow_one_is_not() {
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
