//! Answer bodies, made once and shared by all requests.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::sleep,
};

use super::aborts::Guard;
use crate::payload;

/// Chunks made beforehand: longer streams make theirs as they go.
const READY: u32 = 256;

#[derive(Debug)]
pub(crate) struct Pages {
    chunks: Arc<[Bytes]>,
    plain: Mutex<Bytes>,
    steps: Option<Arc<Semaphore>>,
}

impl Pages {
    /// With `steps`, each chunk after a stream's burst, and its end, takes one of them.
    pub(crate) fn new(steps: Option<Arc<Semaphore>>) -> Self {
        let chunks = (0..READY).map(|index| payload::chunk(index).into()).collect();
        Self { chunks, plain: Mutex::default(), steps }
    }

    /// The plain answer of this length; the last one is kept.
    pub(crate) fn plain(&self, bytes: usize) -> Bytes {
        let mut last = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() != bytes {
            *last = payload::plain(bytes);
        }
        last.clone()
    }

    /// A stream; see [`payload::Answer::Stream`].
    pub(crate) fn stream(
        &self,
        chunks: u32,
        burst: u32,
        gap: Duration,
        guard: Guard,
    ) -> AnswerBody {
        let ready = self.chunks.clone();
        let pace = Pace { burst, gap, steps: self.steps.clone(), wait: None };
        AnswerBody::Stream(Stream { ready, next: 0, chunks, pace, let_go: true, guard })
    }
}

pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    Stream(Stream),
}

impl AnswerBody {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Stream(stream) => stream.poll_chunk(cx),
        };
        frame.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A stream on its way. Dropped before its end, it was aborted, which its guard notes.
pub(crate) struct Stream {
    ready: Arc<[Bytes]>,
    next: u32,
    chunks: u32,
    pace: Pace,
    /// Whether the runtime has had its turn since the last chunk.
    let_go: bool,
    guard: Guard,
}

impl Stream {
    /// Each chunk is a write of its own, as from a model: without the turn left to hyper in
    /// between, it would gather them into one.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.next > self.chunks {
            self.guard.finish();
            return Poll::Ready(None);
        }
        if !std::mem::replace(&mut self.let_go, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let is_paced = self.next < self.chunks || self.pace.steps.is_some();
        if is_paced && self.pace.poll_turn(self.next, cx).is_pending() {
            return Poll::Pending;
        }
        self.let_go = false;
        self.next += 1;
        Poll::Ready(Some(self.text(self.next - 1)))
    }

    fn text(&self, index: u32) -> Bytes {
        if index == self.chunks {
            return Bytes::from_static(payload::DONE);
        }
        let made = || payload::chunk(index).into();
        self.ready.get(index as usize).cloned().unwrap_or_else(made)
    }
}

struct Pace {
    burst: u32,
    gap: Duration,
    steps: Option<Arc<Semaphore>>,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Pace {
    /// Ready when the chunk of this index is due. The gap is counted from the chunk before.
    fn poll_turn(&mut self, index: u32, cx: &mut Context<'_>) -> Poll<()> {
        if index < self.burst || (self.gap.is_zero() && self.steps.is_none()) {
            return Poll::Ready(());
        }
        let (gap, steps) = (self.gap, &self.steps);
        let wait = self.wait.get_or_insert_with(|| Box::pin(due(gap, steps.clone())));
        let turn = wait.as_mut().poll(cx);
        if turn.is_ready() {
            self.wait = None;
        }
        turn
    }
}

async fn due(gap: Duration, steps: Option<Arc<Semaphore>>) {
    match steps {
        // An error is a closed semaphore, and nobody closes this one.
        Some(steps) => steps.acquire().await.map_or((), SemaphorePermit::forget),
        None => sleep(gap).await,
    }
}
