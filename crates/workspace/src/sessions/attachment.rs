//! One client's stream of one session.

use std::{collections::VecDeque, sync::Arc};

use protocol::workspace::SessionId;
use session::terminal::viewer::ViewerId;

use super::{
    attached_viewers::{
        Demand,
        steps::{StreamItem, StreamStep},
    },
    clock::now,
    session::Session,
};
use crate::identity::ClientId;

/// A client's place in a session's output. Dropping it detaches.
pub struct Attachment {
    session: Arc<Session>,
    viewer: ViewerId,
    demand: Arc<Demand>,
    /// Items that the session has given and the client has not taken yet.
    ready: VecDeque<StreamItem>,
    is_over: bool,
}

impl Attachment {
    pub(super) fn new(session: Arc<Session>, client: ClientId, after_seq: Option<u64>) -> Self {
        let (viewer, demand) = session.attach(client, after_seq, now());
        Self { session, viewer, demand, ready: VecDeque::new(), is_over: false }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session.id
    }

    /// The next item, for a client that has room for it: first `session_history`, then output and
    /// its asides, in order. `None` is the end: the session is gone, or the stream was
    /// dropped because the client did not take it (a notice said so). The future may be dropped at
    /// any await.
    ///
    /// Call it only when the client has room. Output that is not requested stays in the session's log,
    /// which is how a slow client is distinguished from a quick one (see `session::terminal::viewer`).
    pub async fn next(&mut self) -> Option<StreamItem> {
        while self.ready.is_empty() && !self.is_over {
            self.ask().await;
        }
        self.ready.pop_front()
    }

    /// Asks the session for the next step, and carries it out.
    async fn ask(&mut self) {
        let session = Arc::clone(&self.session);
        // Registered before the session is asked, so that no news in between is missed.
        let mut news = std::pin::pin!(session.news.notified());
        news.as_mut().enable();
        let done = match session.step(self.viewer, now()) {
            StreamStep::Send(sent) => {
                self.ready.extend(sent);
                Ok(())
            }
            StreamStep::End(sent) => {
                self.is_over = true;
                self.ready.extend(sent);
                Ok(())
            }
            StreamStep::Paint(need) => {
                let painted = session.snapshot(need).await;
                painted.map(|sent| self.ready.extend(sent))
            }
            StreamStep::Load => session.load().await,
            StreamStep::Wait => {
                // A client counts as quick only while it waits here.
                let _demands = DemandGuard::of(&self.demand);
                news.await;
                Ok(())
            }
        };
        if let Err(refusal) = done {
            tracing::error!(session = %self.session.id, %refusal, "a stream ends");
            self.is_over = true;
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.session.detach(self.viewer, now());
    }
}

/// While this exists, the client has room for more.
struct DemandGuard<'a>(&'a Demand);

impl<'a> DemandGuard<'a> {
    fn of(demand: &'a Demand) -> Self {
        demand.begin();
        Self(demand)
    }
}

impl Drop for DemandGuard<'_> {
    fn drop(&mut self) {
        self.0.end(now());
    }
}
