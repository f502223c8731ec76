//! The frames of a task on their way to the server. They outlive a connection that ends.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use protocol::node::{end_frame, text_frame};
use tokio::sync::Notify;
use wire::{Frame, FrameSource, Outbox};

/// [`Reply::say`] waits while more than this many bytes wait for a connection.
const BOUND: usize = 256 * 1024;

/// The longest text in one frame, in bytes.
const FRAME: usize = 64 * 1024;

/// The unsent frames of one task. A connection takes a frame when its socket has room for it; frames that
/// it has not taken when it ends wait for the next connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply(Arc<SharedQueue>);

#[derive(Debug, Default)]
struct SharedQueue {
    state: Mutex<ReplyQueue>,
    room: Notify,
}

#[derive(Debug, Default)]
struct ReplyQueue {
    frames: VecDeque<Bytes>,
    bytes: usize,
    /// Whether any text of this task was queued.
    begun: bool,
    /// The connection that takes the frames, if there is one.
    outbox: Option<Outbox>,
    /// Whether that connection's outbox has this queue as a source.
    notified: bool,
}

impl Reply {
    /// Queues text of a task once there is room for it.
    pub(super) async fn say(&self, task: i32, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(rest.floor_char_boundary(FRAME));
            self.room().await;
            self.push(text_frame(task, piece));
            rest = later;
        }
    }

    /// Queues the end of a task.
    pub(super) fn end(&self, task: i32) {
        self.push(end_frame(task));
    }

    /// Ends a task that failed, with a text that tells its reader of the failure. Without the end,
    /// a stock server would keep the slot taken.
    pub(super) fn fail(&self, task: i32, why: &str) {
        let before = if self.lock().begun { "\n\n" } else { "" };
        self.push(text_frame(task, &format!("{before}[error: {why}]")));
        self.end(task);
    }

    /// Drops the queued frames: another task begins, or this one was given up.
    pub(super) fn clear(&self) {
        let mut state = self.lock();
        state.frames.clear();
        state.bytes = 0;
        state.begun = false;
        drop(state);
        self.0.room.notify_one();
    }

    /// Whether nothing is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().frames.is_empty()
    }

    /// Makes this connection take the frames from now on.
    pub(super) fn attach(&self, outbox: Outbox) {
        let mut state = self.lock();
        state.outbox = Some(outbox);
        state.notified = false;
        self.notify(state);
    }

    /// The connection is gone.
    pub(super) fn detach(&self) {
        self.lock().outbox = None;
    }

    fn push(&self, frame: Bytes) {
        let mut state = self.lock();
        state.begun = true;
        state.bytes += frame.len();
        state.frames.push_back(frame);
        self.notify(state);
    }

    /// Tells the connection that there are frames, unless it knows already.
    fn notify(&self, mut state: MutexGuard<'_, ReplyQueue>) {
        if state.notified || state.frames.is_empty() {
            return;
        }
        // Without a connection, the frames wait; `attach` notifies the next one.
        let Some(outbox) = state.outbox.clone() else { return };
        state.notified = true;
        drop(state);
        // A closed connection takes nothing; `attach` notifies the next one.
        let _ = outbox.push_source(Box::new(self.clone()));
    }

    async fn room(&self) {
        while self.lock().bytes > BOUND {
            self.0.room.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReplyQueue> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FrameSource for Reply {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        let mut state = self.lock();
        let frame = state.frames.pop_front();
        state.bytes -= frame.as_ref().map_or(0, Bytes::len);
        // Set under the lock: a frame that is pushed meanwhile is either seen here, or notifies the
        // connection again.
        state.notified = !state.frames.is_empty();
        let more = state.notified;
        drop(state);
        self.0.room.notify_one();
        frame.map(|frame| (frame.into(), more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(reply: &mut Reply) -> Vec<String> {
        let frames = std::iter::from_fn(|| Some(reply.next_frame()?.0));
        let text = |frame| match frame {
            Frame::Binary(bytes) => String::from_utf8(bytes[4..].to_vec()).unwrap(),
            Frame::Text(text) => panic!("{text}"),
        };
        frames.map(text).collect()
    }

    #[tokio::test]
    async fn a_failure_is_a_line_of_its_own_and_ends_the_task() {
        let mut reply = Reply::default();
        reply.fail(1, "no memory");
        assert_eq!(taken(&mut reply), ["[error: no memory]", ""]);
        reply.clear();
        reply.say(2, "half").await;
        reply.fail(2, "no memory");
        assert_eq!(taken(&mut reply), ["half", "\n\n[error: no memory]", ""]);
    }

    #[tokio::test]
    async fn long_text_is_cut_between_characters() {
        let mut reply = Reply::default();
        let text = "\u{1f40d}".repeat(FRAME / 4 + 1);
        reply.say(1, &format!("a{text}")).await;
        let pieces = taken(&mut reply);
        assert_eq!((pieces.len(), pieces.concat().len()), (2, text.len() + 1));
        assert!(pieces[0].len() <= FRAME);
    }

    #[tokio::test]
    async fn text_waits_while_no_connection_takes_any() {
        let mut reply = Reply::default();
        let piece = "x".repeat(FRAME);
        let sayer = reply.clone();
        let saying = tokio::spawn(async move {
            for _ in 0..6 {
                sayer.say(1, &piece).await;
            }
        });
        tokio::task::yield_now().await;
        assert!(!saying.is_finished());
        let waiting = reply.lock().bytes;
        assert!((BOUND..=BOUND + FRAME + 4).contains(&waiting), "{waiting}");
        let mut taken = 0;
        while taken < 6 {
            taken += usize::from(reply.next_frame().is_some());
            tokio::task::yield_now().await;
        }
        saying.await.unwrap();
        assert!(reply.is_empty());
        assert_eq!(reply.lock().bytes, 0);
    }
}
