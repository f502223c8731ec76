//! The frames that wait at one link for one carried link. They take turns with those of others.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use wire::{Frame, FrameSource, Outbox};

use super::frame::{Body, CarriedFrame};
use crate::{
    circuit::TooMuch,
    link::frame::{Channel, LinkFrame},
};

/// The most bytes that wait for one carried link, in one direction.
pub(crate) const MOST_WAITING: usize = 4 * 1024 * 1024;
/// Roughly the memory of a frame beside its payload, in bytes.
pub(crate) const OVERHEAD: usize = 64;

/// The frames that wait for one carried link, in one direction.
pub(crate) struct Waiting {
    outbox: Outbox,
    channel: Channel,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// Whether the queue has its turn among those of the link.
    has_turn: bool,
}

impl Waiting {
    /// A queue for the link with this outbox. Its frames leave on this channel.
    pub(crate) fn new(outbox: Outbox, channel: Channel) -> Arc<Self> {
        Arc::new(Self { outbox, channel, queue: Mutex::default() })
    }

    /// Puts a frame at the end.
    ///
    /// # Errors
    /// [`TooMuch`] if too much waits.
    pub(crate) fn put(self: &Arc<Self>, body: Body) -> Result<(), TooMuch> {
        // `put_last` takes the lock again.
        let is_full = self.lock().bytes > MOST_WAITING;
        if is_full {
            return Err(TooMuch);
        }
        self.put_last(body);
        Ok(())
    }

    /// Puts a frame at the end in any case. For the last frame of a link, and others that must not
    /// be refused.
    pub(crate) fn put_last(self: &Arc<Self>, body: Body) {
        let frame = LinkFrame::Carried(CarriedFrame::On(self.channel, body).encode()).encode();
        let mut queue = self.lock();
        queue.bytes += frame.len() + OVERHEAD;
        queue.frames.push_back(frame);
        if !std::mem::replace(&mut queue.has_turn, true) {
            drop(queue);
            let _link_ended = self.outbox.push_source(Box::new(Turn(Arc::clone(self))));
        }
    }

    /// Drops the waiting frames, and puts the last frame.
    pub(crate) fn give_up(self: &Arc<Self>, body: Body) {
        let mut queue = self.lock();
        queue.frames.clear();
        queue.bytes = 0;
        drop(queue);
        self.put_last(body);
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue's turn among those that wait for the link.
struct Turn(Arc<Waiting>);

impl FrameSource for Turn {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        let mut queue = self.0.lock();
        let Some(frame) = queue.frames.pop_front() else {
            queue.has_turn = false;
            return None;
        };
        queue.bytes -= frame.len() + OVERHEAD;
        queue.has_turn = !queue.frames.is_empty();
        Some((Frame::Binary(frame), queue.has_turn))
    }
}
