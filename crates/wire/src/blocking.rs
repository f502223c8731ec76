//! An asynchronous stream behind the interface of a blocking one.

use std::{
    io::{self, Read, Write},
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use tokio::{io::ReadBuf, time::Instant};

use crate::{close_watch::CloseWatch, io::Io};

/// Presents an asynchronous stream as the blocking one that the WebSocket library reads and writes:
/// "would block" means that the task of the last [`Blocking::wake`] will be woken.
pub(crate) struct Blocking {
    io: Io,
    /// The bytes that were read from the stream; the library has taken all before `unread`.
    read: Box<[u8]>,
    unread: Range<usize>,
    /// Whether there may be something to read, and the task to wake when there is.
    readable: Arc<Readable>,
    reads: Waker,
    writes: Waker,
    /// When bytes last came.
    pub(crate) heard: Instant,
    /// Looks at all bytes that come, for close frames.
    pub(crate) closes: CloseWatch,
}

impl Blocking {
    /// A stream without a task to wake. `read_buffer`: the most bytes of one read.
    pub(crate) fn new(io: Io, read_buffer: usize) -> Self {
        let readable = Arc::new(Readable::default());
        Self {
            io,
            read: vec![0; read_buffer].into(),
            unread: 0..0,
            reads: Arc::clone(&readable).into(),
            writes: readable.task(),
            readable,
            heard: Instant::now(),
            closes: CloseWatch::default(),
        }
    }

    /// Sets the task that is woken from now on.
    pub(crate) fn wake(&mut self, cx: &Context<'_>) {
        if !self.writes.will_wake(cx.waker()) {
            self.writes.clone_from(cx.waker());
            self.readable.set_task(cx.waker().clone());
        }
    }

    /// Whether a read may bring something. If not, the task will be woken once it may.
    pub(crate) fn may_read(&self) -> bool {
        self.readable.is_set.load(Ordering::Acquire)
    }

    /// Reads from the stream. All that was read before must have been taken.
    fn fill(&mut self) -> io::Result<()> {
        // Cleared before the read: bytes that come during it set the flag again, and are not
        // missed.
        self.readable.is_set.store(false, Ordering::Release);
        let mut buffer = ReadBuf::new(&mut self.read);
        let mut cx = Context::from_waker(&self.reads);
        let read = self.io.as_mut().poll_read(&mut cx, &mut buffer);
        let Poll::Ready(read) = read else { return Err(io::ErrorKind::WouldBlock.into()) };
        self.readable.is_set.store(true, Ordering::Release);
        read?;
        self.heard = Instant::now();
        self.closes.see(buffer.filled());
        self.unread = 0..buffer.filled().len();
        Ok(())
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() {
            self.fill()?;
        }
        let length = buffer.len().min(self.unread.len());
        let taken = self.unread.start..self.unread.start + length;
        self.unread.start = taken.end;
        buffer[..length].copy_from_slice(&self.read[taken]);
        Ok(length)
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(&self.writes);
        match self.io.as_mut().poll_write(&mut cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.writes);
        match self.io.as_mut().poll_flush(&mut cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Whether a stream may have something to read, and the task that is woken then. Thanks to the flag, a
/// task that was woken to write does not try to read.
struct Readable {
    is_set: AtomicBool,
    task: Mutex<Waker>,
}

impl Readable {
    fn task(&self) -> Waker {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_task(&self, task: Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = task;
    }
}

impl Default for Readable {
    fn default() -> Self {
        Self { is_set: AtomicBool::new(true), task: Mutex::new(Waker::noop().clone()) }
    }
}

impl Wake for Readable {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        self.task().wake();
    }
}
