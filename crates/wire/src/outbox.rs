//! The bounded queue into a link.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use tokio::sync::Notify;
use tungstenite::Utf8Bytes;

/// [`Outbox::send`] waits while more than this many bytes are queued.
const SOFT_BOUND: usize = 256 * 1024;

/// [`Outbox::push`] gives the link up when more than this many bytes are queued: the far end has
/// stopped reading and counts as gone.
const HARD_BOUND: usize = 128 * 1024 * 1024;

/// Frames up to this size, in bytes, and sources are bounded together by [`SMALL_BOUND`].
const SMALL: usize = 64 * 1024;

/// [`Outbox::push`] also gives the link up when small frames and sources take more than this many
/// bytes. Most of them answer the far end, which could cause any number of answers and read none of
/// them.
const SMALL_BOUND: usize = 8 * 1024 * 1024;

/// The approximate memory of a queued frame beside its payload, in bytes.
const OVERHEAD: usize = 256;

/// The bytes that a waiting source counts for in these bounds: about its own memory. The message
/// that a source is cut from does not count. The caller that queues the source must bound that
/// message.
const SOURCE: usize = 256;

/// One message of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A text message.
    Text(Utf8Bytes),
    /// A binary message.
    Binary(Bytes),
}

impl Frame {
    /// The length of its payload in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether its payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<String> for Frame {
    /// Shrinks a text whose buffer is much larger, so that it takes no more memory than the queue
    /// counts for it.
    fn from(mut text: String) -> Self {
        if text.capacity() - text.len() > OVERHEAD / 2 {
            text.shrink_to_fit();
        }
        Self::Text(text.into())
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

/// A long message that is cut into frames only when the socket takes them. Sources take turns, so
/// that a large one does not delay the frames behind it. A source that is no longer needed stays in
/// the queue until its turn comes, so it should free its message itself as soon as possible.
pub trait FrameSource: Send {
    /// The next frame, and whether more follow it. `None` when there are no more.
    fn next_frame(&mut self) -> Option<(Frame, bool)>;
}

/// The link is closed and takes no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the link is closed")]
pub struct OutboxClosed;

/// The way into a link, for any number of tasks.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<WriteQueue>,
    space: Notify,
}

#[derive(Default)]
struct WriteQueue {
    queue: VecDeque<Item>,
    bytes: usize,
    /// The bytes of [`SMALL_BOUND`] that the small frames and the sources take.
    small: usize,
    closed: bool,
    /// The link's task while it waits for a frame to write.
    link: Option<Waker>,
    /// The link's task while it waits for the socket. Only a close wakes it.
    blocked: Option<Waker>,
}

impl WriteQueue {
    /// Whether an item of this length, in bytes, would exceed a bound. An empty queue takes any
    /// item.
    fn is_full_for(&self, len: usize) -> bool {
        let over = self.bytes + len > HARD_BOUND || self.small + small(len) > SMALL_BOUND;
        over && !self.queue.is_empty()
    }

    fn close(&mut self) -> [Option<Waker>; 2] {
        self.closed = true;
        self.queue.clear();
        (self.bytes, self.small) = (0, 0);
        [self.link.take(), self.blocked.take()]
    }
}

impl std::fmt::Debug for WriteQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items, {} bytes, closed: {}", self.queue.len(), self.bytes, self.closed)
    }
}

enum Item {
    Frame(Frame),
    Source(Box<dyn FrameSource>),
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared { state: Mutex::default(), space: Notify::new() }))
    }

    /// An outbox without a link, and the reader that takes its frames. Bounds and sources work as
    /// in a link.
    pub fn detached() -> (Self, OutboxReader) {
        let outbox = Self::new();
        (outbox.clone(), OutboxReader(outbox))
    }

    /// Queues a control frame without waiting.
    ///
    /// # Errors
    /// [`OutboxClosed`] when the link is closed, or is given up now because the frame would
    /// exceed a bound.
    pub fn push(&self, frame: impl Into<Frame>) -> Result<(), OutboxClosed> {
        let frame = frame.into();
        let len = frame.len();
        self.put(Item::Frame(frame), len)
    }

    /// Queues a message that is cut into frames as it is written.
    ///
    /// # Errors
    /// [`OutboxClosed`] when the link is closed, or is given up now because the source
    /// would exceed a bound.
    pub fn push_source(&self, source: Box<dyn FrameSource>) -> Result<(), OutboxClosed> {
        self.put(Item::Source(source), SOURCE)
    }

    /// Queues a data frame, once there is room for it.
    ///
    /// # Errors
    /// [`OutboxClosed`] when the link is closed, or closes while this waits.
    pub async fn send(&self, frame: impl Into<Frame>) -> Result<(), OutboxClosed> {
        self.room().await?;
        self.push(frame)
    }

    /// Whether a data frame could be queued now, see [`Outbox::send`].
    pub fn has_room(&self) -> bool {
        let state = self.lock();
        !state.closed && state.bytes <= SOFT_BOUND
    }

    /// Approximately how much memory the queue takes, in bytes.
    pub fn queued(&self) -> usize {
        let state = self.lock();
        state.bytes + OVERHEAD * state.queue.len()
    }

    /// Whether frames wait to be written.
    pub(crate) fn has_frames(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    /// Whether the link still takes frames.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the link from outside: drops the queued frames and wakes the link's task, which then
    /// sees the close.
    pub fn close(&self) {
        let tasks = self.lock().close();
        self.0.space.notify_waiters();
        tasks.into_iter().flatten().for_each(Waker::wake);
    }

    /// Waits until a data frame could be queued, see [`Outbox::has_room`].
    ///
    /// # Errors
    /// [`OutboxClosed`] when the link is closed, or closes while this waits.
    pub async fn room(&self) -> Result<(), OutboxClosed> {
        loop {
            if let Some(room) = self.room_now() {
                return room;
            }
            // Registered before the second look, so that room made in between is not missed.
            let notified = self.0.space.notified();
            if self.room_now().is_none() {
                notified.await;
            }
        }
    }

    /// Whether a data frame could be queued; `None` while there is no room.
    fn room_now(&self) -> Option<Result<(), OutboxClosed>> {
        let state = self.lock();
        match state.closed {
            true => Some(Err(OutboxClosed)),
            false => (state.bytes <= SOFT_BOUND).then_some(Ok(())),
        }
    }

    fn put(&self, item: Item, len: usize) -> Result<(), OutboxClosed> {
        let mut state = self.lock();
        if state.closed {
            return Err(OutboxClosed);
        }
        if state.is_full_for(len) {
            drop(state);
            tracing::warn!("the far end reads nothing: its link is given up");
            self.close();
            return Err(OutboxClosed);
        }
        state.queue.push_back(item);
        state.bytes += len;
        state.small += small(len);
        let link = state.link.take();
        drop(state);
        if let Some(waker) = link {
            waker.wake();
        }
        Ok(())
    }

    /// Registers the link's task to be woken when the link is closed from outside. Returns whether
    /// it is closed already.
    pub(crate) fn wait_for_close(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        state.blocked = Some(cx.waker().clone());
        state.closed
    }

    /// The next frame to write. If there is none, returns `None`, and the link's task will be woken
    /// by the next frame.
    pub(crate) fn pop(&self, cx: &Context<'_>) -> Option<Frame> {
        let mut state = self.lock();
        loop {
            match state.queue.pop_front() {
                None => {
                    state.link = Some(cx.waker().clone());
                    return None;
                }
                Some(Item::Frame(frame)) => {
                    self.leaves(state, frame.len());
                    return Some(frame);
                }
                Some(Item::Source(mut source)) => {
                    // Cutting a frame may take long, and other tasks queue frames while they hold
                    // locks of their own: they must not wait for this.
                    drop(state);
                    let next = source.next_frame();
                    state = self.lock();
                    match next {
                        Some((frame, true)) if !state.closed => {
                            state.queue.push_back(Item::Source(source));
                            return Some(frame);
                        }
                        Some((frame, _)) => {
                            self.leaves(state, SOURCE);
                            return Some(frame);
                        }
                        None => {
                            self.leaves(state, SOURCE);
                            state = self.lock();
                        }
                    }
                }
            }
        }
    }

    /// Records that this many bytes have left the queue.
    fn leaves(&self, mut state: MutexGuard<'_, WriteQueue>, len: usize) {
        let was_full = state.bytes > SOFT_BOUND;
        // Saturating: a close in between has set both to 0.
        state.bytes = state.bytes.saturating_sub(len);
        state.small = state.small.saturating_sub(small(len));
        let has_room = state.bytes <= SOFT_BOUND;
        drop(state);
        if was_full && has_room {
            self.0.space.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueue> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the frames of an [`Outbox::detached`]. Dropping it closes the outbox.
#[derive(Debug)]
pub struct OutboxReader(Outbox);

impl OutboxReader {
    /// The next frame, once there is one; `None` when the outbox is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<Frame> {
        poll_fn(|cx| match self.0.pop(cx) {
            Some(frame) => Poll::Ready(Some(frame)),
            None if self.0.is_closed() => Poll::Ready(None),
            None => Poll::Pending,
        })
        .await
    }

    /// The next frame, if there is one now.
    pub fn try_next(&mut self) -> Option<Frame> {
        self.0.pop(&Context::from_waker(Waker::noop()))
    }
}

impl Drop for OutboxReader {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The bytes of [`SMALL_BOUND`] that an item of this length takes.
fn small(len: usize) -> usize {
    if len <= SMALL { len + OVERHEAD } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    struct Count(u8);

    impl FrameSource for Count {
        fn next_frame(&mut self) -> Option<(Frame, bool)> {
            self.0 = self.0.checked_sub(1)?;
            Some((Bytes::from(vec![self.0]).into(), self.0 > 0))
        }
    }

    fn pop(outbox: &Outbox) -> Option<Frame> {
        outbox.pop(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn frames_overtake_the_rest_of_a_long_source() {
        let outbox = Outbox::new();
        outbox.push_source(Box::new(Count(3))).unwrap();
        outbox.push("now".to_owned()).unwrap();
        let order: Vec<_> = std::iter::from_fn(|| pop(&outbox)).collect();
        let byte = |byte| Frame::from(Bytes::from(vec![byte]));
        assert_eq!(order, [byte(2), Frame::from("now".to_owned()), byte(1), byte(0)]);
    }

    #[test]
    fn a_queue_over_its_hard_bound_gives_the_link_up() {
        let outbox = Outbox::new();
        let piece = Bytes::from(vec![0; 32 << 20]);
        for _ in 0..4 {
            outbox.push(piece.clone()).unwrap();
        }
        assert_eq!(outbox.push(piece), Err(OutboxClosed));
        assert!(outbox.is_closed() && pop(&outbox).is_none());
    }

    /// Looks whether the outbox that it is popped from is free meanwhile.
    struct Unlocked(Outbox);

    impl FrameSource for Unlocked {
        fn next_frame(&mut self) -> Option<(Frame, bool)> {
            assert!(self.0.0.state.try_lock().is_ok(), "cut under the lock");
            Some((Bytes::from_static(b"cut").into(), false))
        }
    }

    #[test]
    fn a_frame_is_cut_while_others_may_queue_theirs() {
        let outbox = Outbox::new();
        outbox.push_source(Box::new(Unlocked(outbox.clone()))).unwrap();
        assert_eq!(pop(&outbox), Some(Bytes::from_static(b"cut").into()));
        assert_eq!((pop(&outbox), outbox.lock().bytes), (None, 0));
    }

    #[test]
    fn sources_that_nobody_takes_reach_the_bound_too() {
        let outbox = Outbox::new();
        let pushed =
            (0..SMALL_BOUND).take_while(|_| outbox.push_source(Box::new(Count(0))).is_ok()).count();
        assert_eq!(pushed, SMALL_BOUND / (SOURCE + OVERHEAD));
        assert!(outbox.is_closed());
    }

    #[test]
    fn small_answers_that_nobody_reads_give_the_link_up_long_before_large_ones() {
        for answer in ["", "pong"] {
            let outbox = Outbox::new();
            let pushed =
                (0..SMALL_BOUND).take_while(|_| outbox.push(answer.to_owned()).is_ok()).count();
            assert_eq!(pushed, SMALL_BOUND / (answer.len() + OVERHEAD));
            assert!(outbox.is_closed());
        }
    }

    #[test]
    fn a_queued_frame_counts_with_the_memory_that_it_takes() {
        let outbox = Outbox::new();
        let mut spacious = String::with_capacity(100_000);
        spacious.push_str("pong");
        let frame = Frame::from(spacious);
        let Frame::Text(text) = frame.clone() else { panic!("a text") };
        let text = Bytes::from(text);
        drop(frame);
        assert_eq!(text.try_into_mut().unwrap().capacity(), 4);
        (0..100).for_each(|_| outbox.push("pong".to_owned()).unwrap());
        assert_eq!(outbox.queued(), 100 * (4 + OVERHEAD));
        while pop(&outbox).is_some() {}
        assert_eq!(outbox.queued(), 0);
    }

    #[test]
    fn small_answers_that_are_read_leave_nothing_of_their_bound() {
        let outbox = Outbox::new();
        for _ in 0..10 {
            outbox.push("pong".to_owned()).unwrap();
            pop(&outbox).unwrap();
        }
        assert_eq!(outbox.lock().small, 0);
    }

    #[test]
    fn sources_that_turn_out_empty_leave_nothing_behind() {
        let outbox = Outbox::new();
        outbox.push_source(Box::new(Count(0))).unwrap();
        outbox.push_source(Box::new(Count(2))).unwrap();
        assert_eq!(std::iter::from_fn(|| pop(&outbox)).count(), 2);
        assert_eq!(outbox.lock().bytes, 0);
    }

    #[tokio::test]
    async fn data_waits_for_room_and_control_does_not() {
        let outbox = Outbox::new();
        outbox.push(Bytes::from(vec![0; SOFT_BOUND + 1])).unwrap();
        let sender = outbox.clone();
        let sent = tokio::spawn(async move { sender.send(Bytes::from_static(b"data")).await });
        tokio::task::yield_now().await;
        assert!(!sent.is_finished() && !outbox.has_room());
        outbox.push("control".to_owned()).unwrap();
        pop(&outbox);
        assert!(outbox.has_room());
        sent.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_detached_outbox_is_read_until_it_is_closed() {
        let (outbox, mut reader) = Outbox::detached();
        let reading = tokio::spawn(async move { (reader.next().await, reader.next().await) });
        tokio::task::yield_now().await;
        outbox.push("now".to_owned()).unwrap();
        tokio::task::yield_now().await;
        outbox.close();
        assert_eq!(reading.await.unwrap(), (Some(Frame::from("now".to_owned())), None));
    }

    #[test]
    fn an_outbox_whose_reader_is_gone_takes_nothing() {
        let (outbox, reader) = Outbox::detached();
        drop(reader);
        assert_eq!(outbox.push("late".to_owned()), Err(OutboxClosed));
    }

    #[tokio::test]
    async fn closing_frees_who_waits() {
        let outbox = Outbox::new();
        outbox.push(Bytes::from(vec![0; SOFT_BOUND + 1])).unwrap();
        let sender = outbox.clone();
        let sent = tokio::spawn(async move { sender.send(Bytes::from_static(b"data")).await });
        tokio::task::yield_now().await;
        outbox.close();
        assert_eq!(sent.await.unwrap(), Err(OutboxClosed));
    }
}
