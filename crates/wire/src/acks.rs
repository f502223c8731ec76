//! Acknowledgements without delay, for far ends that wait for them.
//!
//! A program that has not turned Nagle's algorithm off holds a small write back until its previous
//! write is acknowledged. A kernel that has nothing to send delays an acknowledgement for up to 40 ms.
//! Together the two make a stream of tokens stutter. This side cannot turn off the far end's algorithm,
//! but it can acknowledge at once.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use crate::system::acknowledge_at_once;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Makes a connection acknowledge data as soon as it reads it. An extension of every request that
/// came over an [`Acknowledging`] stream.
#[derive(Debug, Clone, Default)]
pub struct PromptAcks(Arc<AtomicBool>);

impl PromptAcks {
    /// Makes the connection acknowledge at once, from its next read on.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn are_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A TCP connection that acknowledges data as soon as it reads it, once its [`PromptAcks`] are
/// requested.
#[derive(Debug)]
pub struct Acknowledging {
    stream: TcpStream,
    acks: PromptAcks,
}

impl Acknowledging {
    /// Wraps a connection. `acks` is how others ask it for prompt acknowledgements.
    pub fn new(stream: TcpStream, acks: PromptAcks) -> Self {
        Self { stream, acks }
    }
}

impl AsyncRead for Acknowledging {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() && self.acks.are_asked() {
            // The kernel resets the option with the next write, so every read sets it again. If the
            // connection no longer accepts options, the next read reports the error.
            let _ = acknowledge_at_once(&self.stream);
        }
        read
    }
}

impl AsyncWrite for Acknowledging {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Sends one message each way, and returns whether the near end will acknowledge the next one at
    /// once.
    async fn exchanged(near: &mut Acknowledging, far: &mut TcpStream) -> bool {
        let mut byte = [0];
        near.write_all(b"a").await.unwrap();
        far.read_exact(&mut byte).await.unwrap();
        far.write_all(b"b").await.unwrap();
        near.read_exact(&mut byte).await.unwrap();
        near.stream.quickack().unwrap()
    }

    #[tokio::test]
    async fn reads_are_acknowledged_at_once_when_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let acks = PromptAcks::default();
        let mut near = Acknowledging::new(listener.accept().await.unwrap().0, acks.clone());
        // The kernel acknowledges at once on a new connection, and stops when it finds the traffic
        // interactive.
        let mut stopped = false;
        for _ in 0..200 {
            stopped |= !exchanged(&mut near, &mut far).await;
        }
        assert!(stopped);
        acks.ask();
        for _ in 0..50 {
            assert!(exchanged(&mut near, &mut far).await);
        }
    }
}
