//! Teams: `session::team`'s machine with sessions, a clock and the store.
//!
//! - [`Teams`]: the way in, for clients, engines and agents
//! - `answer`: every message about teams; `spawning`: the sessions that they make; `shown`: teams as
//!   clients are told
//! - `queue`: what is to be said to the machine, in order
//! - `driver`: the one task that says it: keeps, carries out, acknowledges; `core`: the machine, and who
//!   waits for it
//! - `facts`: records in the store
//! - `delivery`: a message as an agent's prompt; `news`: results that nobody waited for
//! - `tokens`: what agents show that they are members
//! - `world`: what of the workspace all this needs

mod answer;
mod core;
mod delivery;
mod driver;
mod facts;
mod news;
mod queue;
mod shown;
mod spawning;
#[cfg(test)]
mod tests;
mod tokens;
mod world;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::session::{agent::McpServer, team::Limits};
use protocol::workspace::{ClientMessage, ServerMessage, SessionId, TeamId};
use store::StoreError;
use tokio::{task::JoinHandle, time::timeout};

pub(crate) use self::delivery::Ticket;
use self::{
    core::now,
    driver::Driver,
    queue::{Queue, Told},
    tokens::Tokens,
    world::{Outside, World},
};
use crate::{refusal::Refusal, socket::Identity, work::Shared};

/// How long a shut-down waits for what is still to be kept.
const FLUSH: Duration = Duration::from_secs(5);

/// All teams.
#[derive(Default)]
pub(crate) struct Teams {
    queue: Arc<Queue>,
    tokens: Tokens,
    driving: Mutex<Option<JoinHandle<()>>>,
}

/// Whom a token of a member of a team speaks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) team: TeamId,
    pub(crate) session: SessionId,
}

impl Teams {
    /// Answers one message about teams; it may wait (`handoff`, `team_wait`). Dropping the future
    /// gives the wait up, and loses nothing.
    pub(crate) async fn answer(
        &self,
        shared: &Arc<Shared>,
        who: &Identity,
        message: ClientMessage,
    ) -> Result<ServerMessage, Refusal> {
        let world: Arc<dyn World> = Arc::new(Outside(Arc::downgrade(shared)));
        answer::answer(&self.queue, &world, who, message).await
    }

    /// Finds the teams that were kept, when all sessions have been found. Sessions of a team that
    /// is no more are ended; what has not reached its addressee is delivered.
    pub(crate) async fn restore(&self, shared: &Arc<Shared>) -> Result<(), StoreError> {
        let outside = Outside(Arc::downgrade(shared));
        let world: Arc<dyn World> = Arc::new(outside.clone());
        let driver = Driver::restore(shared.store.clone(), Arc::clone(&world), Limits::default());
        let (driver, all_read) = driver.await?;
        if all_read {
            outside.end_orphans(&driver.teams());
        }
        self.drive(driver);
        Ok(())
    }

    /// Returns when all that was said before is kept, or cannot be.
    pub(crate) async fn flush(&self) {
        let nothing = queue::ask(&self.queue, |_, _| (Ok(()), Vec::new()));
        let _late = timeout(FLUSH, nothing).await;
    }

    /// Whose token this is, if it is one that a member of a team was started with.
    pub(crate) fn member(&self, token: &str) -> Option<Member> {
        self.tokens.member(token)
    }

    /// What an agent of a team is started with: the MCP server's command line and environment.
    pub(crate) fn mcp(&self, shared: &Shared, member: Member) -> McpServer {
        self.tokens.mcp(shared.gateway(), member)
    }

    /// A turn of a session has begun.
    pub(crate) fn turn_started(&self, _shared: &Arc<Shared>, session: SessionId, turn: u64) {
        self.queue.tell(Told::Started { session: session.uuid(), turn, at: now().at });
    }

    /// A turn of a session has ended, with its final text.
    pub(crate) fn turn_ended(
        &self,
        _shared: &Arc<Shared>,
        session: SessionId,
        turn: u64,
        ok: bool,
        text: Option<String>,
    ) {
        self.queue.tell(Told::ended(session, turn, ok, text, now().at));
    }

    /// A session is gone, killed or ended by itself.
    pub(crate) fn session_gone(&self, _shared: &Arc<Shared>, session: SessionId) {
        self.tokens.forget(session);
        self.queue.tell(Told::Gone { session: session.uuid(), at: now().at });
    }

    fn drive(&self, driver: Driver) {
        let driving = tokio::spawn(driver.run(Arc::clone(&self.queue)));
        *self.driving.lock().unwrap_or_else(PoisonError::into_inner) = Some(driving);
    }
}

impl Drop for Teams {
    fn drop(&mut self) {
        let driving = self.driving.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(driving) = driving.take() {
            driving.abort();
        }
    }
}

impl Outside {
    /// Ends the sessions of teams that are no more: the daemon died while it ended them.
    fn end_orphans(&self, teams: &[TeamId]) {
        let Some(shared) = self.0.upgrade() else { return };
        let all = shared.sessions.list(true).into_iter();
        let orphans = all.filter(|session| session.team_id.is_some_and(|id| !teams.contains(&id)));
        let orphans: Vec<_> = orphans.map(|session| session.id).collect();
        if !orphans.is_empty() {
            tokio::spawn(self.kill(orphans));
        }
    }
}
