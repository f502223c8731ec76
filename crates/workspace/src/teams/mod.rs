//! Teams: `session::team`'s machine with sessions, a clock and the store.
//!
//! - [`Teams`]: called by engines and agents; [`TeamRequests`], [`Desk`]: called for clients
//! - `desk`: answers every request about teams; `spawning`: the sessions that teams create;
//!   `shown`: teams in the form that clients get
//! - `queue`: the inputs of the machine, in order
//! - `driver`: the one task that feeds the machine: it stores changes, carries out effects and
//!   acknowledges requests; `core`: the machine and its callers
//! - `facts`: records in the store
//! - `delivery`: a message as an agent's prompt; `news`: results that no caller waited for
//! - `world`: the rest of the workspace as teams need it; `outside`: its implementation

mod core;
pub(crate) mod delivery;
mod desk;
mod driver;
mod facts;
mod news;
mod outside;
mod queue;
mod shown;
mod spawning;
#[cfg(test)]
mod tests;
mod world;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::session::team::Limits;
use protocol::workspace::SessionId;
use store::{StoreError, WorkspaceStore};
use tokio::{task::JoinHandle, time::timeout};
use tracing::Instrument as _;

use self::{
    core::now,
    driver::Driver,
    queue::{Queue, SessionNotice},
    world::World,
};
pub(crate) use self::{
    desk::{Desk, TeamRequests},
    outside::Outside,
};
use crate::{member_tokens::MemberTokens, sessions::TurnFollower};

/// How long a shut-down waits for records that are not stored yet.
const FLUSH: Duration = Duration::from_secs(5);

/// All teams of this machine.
pub(crate) struct Teams {
    queue: Arc<Queue>,
    member_tokens: Arc<MemberTokens>,
    driving: Mutex<Option<JoinHandle<()>>>,
}

impl Teams {
    /// Without any teams yet. The token of a member is forgotten when its session is gone.
    pub(crate) fn new(member_tokens: Arc<MemberTokens>) -> Self {
        Self { queue: Arc::default(), member_tokens, driving: Mutex::default() }
    }

    /// The handler of clients' requests.
    pub(crate) fn requests(&self, outside: &Outside) -> TeamRequests {
        let world: Arc<dyn World> = Arc::new(outside.clone());
        TeamRequests::new(Arc::clone(&self.queue), world)
    }

    /// Restores the stored teams, after all sessions were restored. Ends sessions whose team is gone, and
    /// delivers messages that did not reach their addressee.
    pub(crate) async fn restore(
        &self,
        store: Arc<dyn WorkspaceStore>,
        outside: &Outside,
    ) -> Result<(), StoreError> {
        let world: Arc<dyn World> = Arc::new(outside.clone());
        let (driver, all_read) = Driver::restore(store, world, Limits::default()).await?;
        // If a record could not be read, the team of an apparent orphan may still exist.
        if all_read {
            outside.end_orphans(&driver.teams());
        }
        self.drive(driver);
        Ok(())
    }

    /// Waits until all earlier changes are stored or have failed, [`FLUSH`] at most.
    pub(crate) async fn flush(&self) {
        let nothing = queue::ask(&self.queue, |_, _| (Ok(()), Vec::new()));
        let _late = timeout(FLUSH, nothing).await;
    }

    fn drive(&self, driver: Driver) {
        // One task serves all teams, so it must not inherit the span of a client.
        let span = tracing::info_span!(parent: None, "teams");
        let driving = tokio::spawn(driver.run(Arc::clone(&self.queue)).instrument(span));
        *self.driving.lock().unwrap_or_else(PoisonError::into_inner) = Some(driving);
    }
}

impl TurnFollower for Teams {
    fn turn_started(&self, session: SessionId, turn: u64) {
        self.queue.tell(SessionNotice::Started { session: session.uuid(), turn, at: now().at });
    }

    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>) {
        self.queue.tell(SessionNotice::ended(session, turn, ok, text, now().at));
    }

    fn session_gone(&self, session: SessionId) {
        self.member_tokens.forget(session);
        self.queue.tell(SessionNotice::Gone { session: session.uuid(), at: now().at });
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
