//! An asynchronous stream in the clothes of a blocking one.

use std::{
    io::{self, Read, Write},
    task::{Context, Poll, Waker},
};

use tokio::{io::ReadBuf, time::Instant};

use crate::{close_watch::CloseWatch, io::Io};

/// Presents an asynchronous stream as the blocking one that the WebSocket library reads and writes:
/// "would block" means that the task of the last [`Blocking::wake`] will be woken.
pub(crate) struct Blocking {
    io: Io,
    waker: Waker,
    /// When bytes last came.
    pub(crate) heard: Instant,
    /// Sees all that comes.
    pub(crate) closes: CloseWatch,
}

impl Blocking {
    /// A stream without a task to wake.
    pub(crate) fn new(io: Io) -> Self {
        Self {
            io,
            waker: Waker::noop().clone(),
            heard: Instant::now(),
            closes: CloseWatch::default(),
        }
    }

    /// The waker to use from now on.
    pub(crate) fn wake(&mut self, cx: &Context<'_>) {
        self.waker.clone_from(cx.waker());
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_read(&mut cx, &mut buffer) {
            Poll::Ready(Ok(())) => {
                self.heard = Instant::now();
                self.closes.see(buffer.filled());
                Ok(buffer.filled().len())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_write(&mut cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        match self.io.as_mut().poll_flush(&mut cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}
