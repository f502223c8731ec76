//! The queues of a link. Each has a bound, so that a peer that reads slowly costs little memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::LinkClosed;

/// The most small messages that wait. If more would wait, the peer does not read.
pub(super) const MAX_WAITING: usize = 1_024;

/// The most bytes of small messages that wait. They are bounded because requests can be large.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The most bytes of answers that wait.
pub(super) const ANSWERS: usize = 256 * 1024;

/// The most slices of pieces that wait.
pub(super) const PIECES: usize = 2;

/// The queues.
pub(super) struct Lanes {
    state: Mutex<Queues>,
    wake: Notify,
    answers: Arc<Semaphore>,
    pieces: Arc<Semaphore>,
    ended: CancellationToken,
}

#[derive(Default)]
struct Queues {
    control: VecDeque<Vec<u8>>,
    control_bytes: usize,
    answers: VecDeque<(Vec<u8>, OwnedSemaphorePermit)>,
    /// Each in two parts, a head and a body.
    pieces: VecDeque<(Vec<u8>, Bytes, OwnedSemaphorePermit)>,
    closed: Option<String>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            wake: Notify::new(),
            answers: Arc::new(Semaphore::new(ANSWERS)),
            pieces: Arc::new(Semaphore::new(PIECES)),
            ended: CancellationToken::new(),
        }
    }
}

/// The result of queueing a small message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It will be sent.
    Done,
    /// The link is closed.
    Closed,
    /// Too much waits, because the peer does not read.
    Full,
}

impl Lanes {
    /// Queues a small message. Small messages are sent before answers and pieces.
    pub(super) fn put_control(&self, bytes: Vec<u8>) -> Put {
        let mut state = self.lock();
        if state.closed.is_some() {
            return Put::Closed;
        }
        if state.control.len() >= MAX_WAITING || state.control_bytes + bytes.len() > MAX_BYTES {
            return Put::Full;
        }
        state.control_bytes += bytes.len();
        state.control.push_back(bytes);
        drop(state);
        self.wake.notify_one();
        Put::Done
    }

    /// Queues a part of an answer, once there is room for it.
    pub(super) async fn put_answer(&self, bytes: Vec<u8>) -> Result<(), LinkClosed> {
        // A message that is longer than the whole lane waits until the lane is empty.
        let share = bytes.len().clamp(1, ANSWERS) as u32;
        let permit = self.room(&self.answers, share).await?;
        self.push(|state| state.answers.push_back((bytes, permit)))
    }

    /// Queues a slice of a piece, in two parts, once there is room for it.
    pub(super) async fn put_piece(&self, head: Vec<u8>, body: Bytes) -> Result<(), LinkClosed> {
        let permit = self.room(&self.pieces, 1).await?;
        self.push(|state| state.pieces.push_back((head, body, permit)))
    }

    /// Closes the queues. Small messages that wait are still sent.
    pub(super) fn close(&self, why: &str) {
        // Set before the semaphores are closed, so that a sender that still gets room finds the
        // link closed.
        self.lock().closed.get_or_insert_with(|| why.to_owned());
        self.answers.close();
        self.pieces.close();
        self.wake.notify_one();
        self.ended.cancel();
    }

    pub(super) fn why_closed(&self) -> Option<String> {
        self.lock().closed.clone()
    }

    /// Cancelled once it is closed.
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    async fn room(
        &self,
        of: &Arc<Semaphore>,
        share: u32,
    ) -> Result<OwnedSemaphorePermit, LinkClosed> {
        Arc::clone(of).acquire_many_owned(share).await.map_err(|_| LinkClosed)
    }

    /// Queues an item, unless the link was closed while the caller waited for room.
    fn push(&self, push: impl FnOnce(&mut Queues)) -> Result<(), LinkClosed> {
        let mut state = self.lock();
        if state.closed.is_some() {
            return Err(LinkClosed);
        }
        push(&mut state);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a link's queues from which the task that writes to the socket takes payloads.
pub(crate) struct Outgoing(Arc<Lanes>);

/// One payload. Dropping it frees its room in its lane.
pub(crate) struct Payload {
    head: Vec<u8>,
    body: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Payload {
    /// Its bytes, in two parts. The second may be empty.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.head, &self.body)
    }
}

impl Outgoing {
    pub(super) fn new(lanes: Arc<Lanes>) -> Self {
        Self(lanes)
    }

    /// Waits for the next payload. `None` once the link is closed and all small messages were
    /// taken. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Payload> {
        loop {
            match self.ready() {
                Ready::Payload(payload) => return Some(payload),
                Ready::Closed => return None,
                Ready::Nothing => self.0.wake.notified().await,
            }
        }
    }

    /// The next payload, if there is one now.
    pub(crate) fn try_next(&mut self) -> Option<Payload> {
        match self.ready() {
            Ready::Payload(payload) => Some(payload),
            Ready::Closed | Ready::Nothing => None,
        }
    }

    fn ready(&mut self) -> Ready {
        let mut state = self.0.lock();
        if let Some(head) = state.control.pop_front() {
            state.control_bytes -= head.len();
            return Ready::Payload(Payload { head, body: Bytes::new(), _room: None });
        }
        if state.closed.is_some() {
            return Ready::Closed;
        }
        if let Some((head, room)) = state.answers.pop_front() {
            return Ready::Payload(Payload { head, body: Bytes::new(), _room: Some(room) });
        }
        let Some((head, body, room)) = state.pieces.pop_front() else { return Ready::Nothing };
        Ready::Payload(Payload { head, body, _room: Some(room) })
    }
}

enum Ready {
    Payload(Payload),
    Closed,
    Nothing,
}

impl Drop for Outgoing {
    /// Wakes the senders that wait, since there will be no more room.
    fn drop(&mut self) {
        self.0.close("its task has ended");
    }
}
