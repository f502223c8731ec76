//! The frames that wait at one link for one carried link. They leave in turns with those of others.

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
/// The memory of a frame beside its payload, in bytes, about.
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
    /// Whether the link will ask for a frame.
    has_turn: bool,
}

impl Waiting {
    /// For the link with this outbox. Frames leave on this channel.
    pub(crate) fn new(outbox: Outbox, channel: Channel) -> Arc<Self> {
        Arc::new(Self { outbox, channel, queue: Mutex::default() })
    }

    /// Puts a frame at the end.
    ///
    /// # Errors
    /// [`TooMuch`] if too much waits.
    pub(crate) fn put(self: &Arc<Self>, body: Body) -> Result<(), TooMuch> {
        // The lock is taken again below.
        let is_full = self.lock().bytes > MOST_WAITING;
        if is_full {
            return Err(TooMuch);
        }
        self.put_last(body);
        Ok(())
    }

    /// The same for the last frame, which there is always room for.
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

    /// Drops what waits, and puts the last frame.
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

/// Its place among those that wait for the link.
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
