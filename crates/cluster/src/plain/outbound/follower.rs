//! A session's output on its way to one client.

use std::sync::{Mutex, PoisonError};

use protocol::workspace::{SessionId, frame};
use tokio::sync::Notify;
use wire::Outbox;

/// The output of a session for one client. A client without room misses output, so that the link to
/// the peer never waits for it.
pub(crate) struct Follower {
    session: SessionId,
    answers: Outbox,
    state: Mutex<State>,
    lagged: Notify,
}

struct State {
    last_seq: u64,
    is_behind: bool,
}

impl Follower {
    pub(crate) fn new(session: SessionId, after_seq: u64, answers: Outbox) -> Self {
        let state = Mutex::new(State { last_seq: after_seq, is_behind: false });
        Self { session, answers, state, lagged: Notify::new() }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Passes on output with this number; 0 if the peer does not number output. Output that other
    /// clients' subscriptions bring comes here, too.
    pub(crate) fn output(&self, seq: u64, data: &str) {
        let mut state = self.lock();
        let seq = if seq == 0 { state.last_seq + 1 } else { seq };
        if state.is_behind || seq <= state.last_seq {
            return;
        }
        if !self.answers.has_room() {
            state.is_behind = true;
            self.lagged.notify_one();
            return;
        }
        state.last_seq = seq;
        // A client that has gone is noticed by its circuit.
        let _gone = self.answers.push(frame::encode(self.session, seq, data.as_bytes()));
    }

    /// The number of the last output that the client got.
    pub(crate) fn last_seq(&self) -> u64 {
        self.lock().last_seq
    }

    /// Waits until the client has missed output, and has room again. Cancel safe.
    pub(crate) async fn caught_up(&self) {
        while !self.lock().is_behind {
            self.lagged.notified().await;
        }
        if self.answers.room().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_like::now;
    use wire::Frame;

    use super::*;

    mod futures_like {
        use std::task::{Context, Poll, Waker};

        /// Whether a future is ready at once.
        pub(super) fn now(future: impl Future<Output = ()>) -> bool {
            let mut future = std::pin::pin!(future);
            future.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
        }
    }

    const ID: SessionId = SessionId::from_random(7);

    fn framed(seq: u64, data: &str) -> Option<Frame> {
        Some(Frame::from(frame::encode(ID, seq, data.as_bytes())))
    }

    #[test]
    fn output_comes_once_and_numbered() {
        let (answers, mut reader) = Outbox::detached();
        let follower = Follower::new(ID, 4, answers);
        for (seq, data) in [(3, "old"), (5, "a"), (5, "again"), (7, "b"), (0, "c")] {
            follower.output(seq, data);
        }
        assert_eq!(reader.try_next(), framed(5, "a"));
        assert_eq!(reader.try_next(), framed(7, "b"));
        assert_eq!(reader.try_next(), framed(8, "c"));
        assert_eq!(reader.try_next(), None::<Frame>);
        assert_eq!(follower.last_seq(), 8);
    }

    #[test]
    fn a_client_without_room_misses_output_and_is_behind_until_it_has_room() {
        let (answers, mut reader) = Outbox::detached();
        let follower = Follower::new(ID, 0, answers.clone());
        assert!(!now(follower.caught_up()));
        answers.push(Bytes::from(vec![0; 300 * 1024])).unwrap();
        follower.output(1, "missed");
        assert!(!now(follower.caught_up()), "there is no room yet");
        reader.try_next().unwrap();
        assert!(now(follower.caught_up()));
        follower.output(2, "too early");
        assert_eq!((reader.try_next(), follower.last_seq()), (None::<Frame>, 0));
    }
}
