//! One client's stream of one session.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use protocol::workspace::{ServerMessage, SessionId};
use session::terminal::viewer::ViewerId;

use super::{client_id::ClientId, clock::now, session::Session, stream::Turn, viewers::Asking};

/// An item of a stream.
#[derive(Debug)]
pub enum Streamed {
    /// A message of the protocol, to be sent as JSON.
    Message(ServerMessage),
    /// A binary frame, complete: header and payload.
    Output(Bytes),
}

/// A client's place in a session's output. Dropping it detaches.
pub struct Attachment {
    session: Arc<Session>,
    viewer: ViewerId,
    asking: Arc<Asking>,
    /// Items that the session has given and the client has not taken yet.
    ready: VecDeque<Streamed>,
    is_over: bool,
}

impl Attachment {
    pub(super) fn new(session: Arc<Session>, client: ClientId, after_seq: Option<u64>) -> Self {
        let (now, patience) = (now(), session.commons.lag_timeout);
        let (viewer, asking) = session.change(now, |state| {
            let added = state.viewers.add(client, after_seq, patience, &state.output, now);
            // The viewer gets all asides from now on, however long it takes to load its history.
            if let Some(watching) = state.viewers.get(added.0) {
                watching.aside = state.asides.end();
            }
            added
        });
        session.tell(now);
        Self { session, viewer, asking, ready: VecDeque::new(), is_over: false }
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session.id
    }

    /// The next item, for a client that has room for it: first `session_history`, then output and
    /// what belongs to it, in order. `None` is the end: the session is gone, or the stream was
    /// dropped because the client did not take it (a notice said so). The future may be dropped at
    /// any await.
    ///
    /// Call it only when there is room. Output that is not requested stays in the session's log,
    /// which is how a slow client is distinguished from a quick one (see `session::viewer`).
    pub async fn next(&mut self) -> Option<Streamed> {
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
        let done = match session.turn(self.viewer, now()) {
            Turn::Send(sent) => {
                self.ready.extend(sent);
                Ok(())
            }
            Turn::End(sent) => {
                self.is_over = true;
                self.ready.extend(sent);
                Ok(())
            }
            Turn::Paint(behind) => {
                let painted = session.paint(behind).await;
                painted.map(|sent| self.ready.extend(sent))
            }
            Turn::Load => session.load().await,
            Turn::Wait => {
                let _asks = Asks::of(&self.asking);
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
        self.session.leave(self.viewer, now());
    }
}

/// While this exists, the client has room for more.
struct Asks<'a>(&'a Asking);

impl<'a> Asks<'a> {
    fn of(asking: &'a Asking) -> Self {
        asking.begin();
        Self(asking)
    }
}

impl Drop for Asks<'_> {
    fn drop(&mut self) {
        self.0.end(now());
    }
}
