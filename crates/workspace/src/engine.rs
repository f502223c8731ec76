//! The engine of a session: a terminal, an agent or an adopted process.
//!
//! A session's engine is told what clients want through [`Engine`], whose calls never wait: what
//! takes time goes into a bounded queue of the engine's own task. It tells what comes of it through
//! [`Feed`](crate::sessions::Feed).

use bytes::Bytes;
use futures_util::future::BoxFuture;
use session::terminal::size::Size;
use tokio::sync::oneshot;

use crate::{refusal::Refusal, teams::delivery::Ticket};

/// The answer to a question of an agent.
#[derive(Debug, Clone)]
pub(crate) struct PermissionAnswer {
    pub(crate) request_id: String,
    pub(crate) allow: bool,
    pub(crate) message: Option<String>,
}

/// Keys that were taken.
#[derive(Debug)]
pub(crate) enum Typed {
    /// They are typed, or soon will be.
    Now,
    /// So much waits before them that their client should wait, too: until this says that they are typed. It
    /// ends without a word where they never will be.
    Later(oneshot::Receiver<()>),
}

/// The commands for a live session. An engine refuses, in words, those that make no sense for it.
pub(crate) trait Engine: Send + Sync {
    /// Raw keys.
    fn type_in(&self, keys: Bytes) -> Result<Typed, Refusal>;

    /// A whole prompt: for an agent one turn, for a terminal the text and one Enter. Which turn it
    /// will be, where there are turns and that is known already.
    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal>;

    /// A whole prompt of a team's. The ticket says that its turn begins: right before
    /// [`Feed::turn_started`](crate::sessions::Feed::turn_started) of the turn with this prompt,
    /// for what has no turns at once. A ticket that is dropped says that the turn never comes.
    fn prompt_for(&self, text: String, ticket: Ticket) -> Result<(), Refusal> {
        self.prompt(text)?;
        ticket.turn_begins();
        Ok(())
    }

    /// Ends the current turn; a terminal gets what Ctrl-C types.
    fn interrupt(&self) -> Result<(), Refusal>;

    /// Answers a question that was asked with [`Feed::ask`](crate::sessions::Feed::ask).
    fn permit(&self, answer: PermissionAnswer) -> Result<(), Refusal>;

    /// The terminal has another size now.
    fn resize(&self, size: Size);

    /// The processes that belong to it now.
    fn processes(&self) -> BoxFuture<'_, Vec<u32>>;

    /// Ends it: HUP, TERM, KILL to all that belongs to it. Returns when nothing is left, or cannot
    /// be got rid of.
    fn stop(&self) -> BoxFuture<'_, ()>;
}
