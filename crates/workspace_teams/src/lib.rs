//! Teams of agents on this machine: `session::team`'s machine with sessions, a clock and the store.
//!
//! - [`Teams`]: follows the turns of members; [`TeamRequests`], [`Desk`]: called for clients' requests
//! - `desk`: answers every request about teams; `spawning`: the sessions that teams create;
//!   `shown`: teams in the form that clients get
//! - `queue`: the inputs of the machine, in order
//! - `driver`: the one task that feeds the machine: it stores changes, carries out effects and
//!   acknowledges requests; `core`: the machine and its callers
//! - `facts`: records in the store
//! - `delivery`: a message as an agent's prompt; `news`: results that no caller waited for
//! - `outposts`: team workers on other members, and team workers here for the teams of other members
//! - `team_host`: the parts of the workspace that teams use; `workspace_host`: these parts of the real workspace

mod core;
mod delivery;
mod desk;
mod driver;
mod facts;
mod news;
mod outposts;
mod queue;
mod shown;
mod spawning;
mod team_host;
#[cfg(test)]
mod tests;
mod workspace_host;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::session::team::Limits;
use protocol::workspace::SessionId;
use store::StoreError;
use tokio::{task::JoinHandle, time::timeout};
use tracing::Instrument as _;
use workspace::{TurnFollower, Workspace};

use self::{
    core::now,
    driver::Driver,
    outposts::Outposts,
    queue::{Queue, SessionNotice},
    workspace_host::WorkspaceHost,
};
pub use self::{
    desk::{Desk, TeamRequests},
    outposts::{Line, Members},
};

/// How long a shut-down waits for records that are not stored yet.
const FLUSH: Duration = Duration::from_secs(5);

/// All teams of this machine.
pub struct Teams {
    queue: Arc<Queue>,
    outposts: Arc<Outposts>,
    driving: Mutex<Option<JoinHandle<()>>>,
}

impl Default for Teams {
    fn default() -> Self {
        let queue = Arc::<Queue>::default();
        let outposts = Arc::new(Outposts::new(&queue));
        Self { queue, outposts, driving: Mutex::default() }
    }
}

impl Teams {
    /// The handler of clients' requests.
    pub fn requests(&self, workspace: &Workspace) -> TeamRequests {
        let host = WorkspaceHost::new(workspace, &self.outposts);
        TeamRequests::new(Arc::clone(&self.queue), Arc::new(host), Arc::clone(&self.outposts))
    }

    /// Restores the stored teams of a workspace that has started. Ends sessions whose team is gone,
    /// and delivers messages that have not reached their addressees.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn restore(&self, workspace: &Workspace) -> Result<(), StoreError> {
        let host = WorkspaceHost::new(workspace, &self.outposts);
        let outposts = Arc::clone(&self.outposts);
        let store = Arc::clone(&workspace.store);
        let (driver, all_read) =
            Driver::restore(store, Arc::new(host.clone()), outposts, Limits::default()).await?;
        // If a record could not be read, the team of an apparent orphan may still exist.
        match all_read {
            true => host.end_orphans(&driver.teams(), &driver.seats()),
            false => self.outposts.note_incomplete(),
        }
        self.drive(driver);
        Ok(())
    }

    /// Waits until all earlier changes are stored or have failed, a few seconds at most.
    pub async fn flush(&self) {
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
