//! One watcher's subscription.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::task::coop::poll_proceed;

use super::{
    Form, Next,
    log::{Log, Watcher},
};

/// A watcher's position in a log. Dropping it ends the subscription.
pub struct Subscription {
    log: Arc<Log>,
    watcher: Watcher,
    stage: Stage,
}

/// The progress of a subscription.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first frame will say that events were missed.
    Missed,
    Open,
    Over,
}

impl Subscription {
    pub(super) fn new(log: Arc<Log>, watcher: Watcher, missed: bool) -> Self {
        let stage = if missed { Stage::Missed } else { Stage::Open };
        Self { log, watcher, stage }
    }

    /// The id of the last event that it has seen or can skip: a watcher that resumes after it
    /// misses nothing.
    pub const fn last_id(&self) -> u64 {
        self.watcher.after()
    }

    /// Waits for the next item. Cancel safe. After the last it returns [`Next::Closed`] for ever.
    pub async fn next(&mut self) -> Next {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The polling form, for bodies: returns the next item, or wakes the task when there may be
    /// one.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        match self.stage {
            Stage::Over => return Poll::Ready(Next::Closed),
            Stage::Missed => {
                self.stage = Stage::Open;
                return Poll::Ready(Next::Frames(Bytes::from_static(MISSED)));
            }
            Stage::Open => {}
        }
        // A watcher that is far behind gives way to other tasks now and then.
        let budget = ready!(poll_proceed(cx));
        let next = ready!(self.log.poll_next(&mut self.watcher, cx));
        budget.made_progress();
        if !matches!(next, Next::Frames(_)) {
            self.stage = Stage::Over;
        }
        Poll::Ready(next)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.log.leave(&self.watcher);
    }
}

/// The first frame for a client that resumes and has missed events: a comment, which every parser skips.
const MISSED: &[u8] = b": some events were missed: they are not kept any more\n\n";

impl Form {
    /// The last frame for a watcher that was too slow. It has no id, so a client comes back with
    /// the id of the last event that it saw.
    pub(super) fn lagged(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Messages => {
                b"data: {\"type\":\"room:error\",\"error\":\"you read too slowly, and events were \
                  missed: connect again, with Last-Event-ID for what is still kept\"}\n\n"
            }
            Self::Named => {
                b": you read too slowly, and events were missed: connect again\n\n".as_slice()
            }
            Self::NamedWithIds => {
                b": you read too slowly, and events were missed: connect again, with \
                  Last-Event-ID for what is still kept\n\n"
            }
        })
    }
}
