//! The requests to the server, in the name of a member of a team.
//!
//! Each is made over a connection of its own: a model calls several tools at once, some of them wait for
//! long, and a connection that is kept open for nobody has to be read all the same. On the machine itself,
//! where members run, a connection takes next to nothing.

use std::time::Duration;

use base::Backoff;
use client::{
    ClientError,
    workspace::{Address, Workspace},
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{
    SessionId, TeamId,
    client::{
        Assign, GetTeamInbox, Handoff, HandoffResult, RelayTeamMessage, TeamInbox, TeamWait,
        TeamWaitResult, WorkerAssigned, WorkerResult,
    },
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

/// How long a server that is not there is tried again.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often something is asked that may be asked again, when the server is lost each time.
const TRIES: usize = 5;
/// Requests at the same time.
const AT_ONCE: usize = 16;

/// A member of a team, and the server that it talks to.
pub(crate) struct Member {
    address: Address,
    pub(crate) team: TeamId,
    pub(crate) session: SessionId,
    room: Semaphore,
}

/// What somebody is given to do.
pub(crate) struct Work {
    pub(crate) prompt: String,
    pub(crate) worker_name: Option<String>,
    pub(crate) provider: Option<String>,
}

impl Member {
    pub(crate) fn new(address: Address, team: TeamId, session: SessionId) -> Self {
        Self { address, team, session, room: Semaphore::new(AT_ONCE) }
    }

    pub(crate) async fn handoff(
        &self,
        work: Work,
        timeout: Duration,
    ) -> Result<HandoffResult, ClientError> {
        let Work { prompt, worker_name, provider } = work;
        let (team_id, timeout_ms) = (self.team, Some(base::millis(timeout)));
        let asked = Handoff { team_id, prompt, worker_name, timeout_ms, provider, mode: None };
        self.once(|server| server.handoff(asked).boxed()).await
    }

    pub(crate) async fn assign(&self, work: Work) -> Result<WorkerAssigned, ClientError> {
        let Work { prompt, worker_name, provider } = work;
        let asked = Assign { team_id: self.team, prompt, worker_name, provider, mode: None };
        self.once(|server| server.assign(asked).boxed()).await
    }

    pub(crate) async fn send(
        &self,
        to: Option<SessionId>,
        payload: String,
    ) -> Result<u64, ClientError> {
        let (team_id, from_session_id) = (self.team, self.session);
        let asked = RelayTeamMessage { team_id, from_session_id, to_session_id: to, payload };
        self.once(|server| server.relay(asked).boxed()).await
    }

    /// It may be asked twice: the second answer is the first one's.
    pub(crate) async fn wait(&self, wait: &TeamWait) -> Result<TeamWaitResult, ClientError> {
        let waited = self.again(|server| server.team_wait(wait.clone()).boxed()).await;
        waited.map(|reported| reported.answer)
    }

    pub(crate) async fn inbox(&self, since_seq: Option<u64>) -> Result<TeamInbox, ClientError> {
        let asked = GetTeamInbox { team_id: self.team, session_id: self.session, since_seq };
        self.again(|server| server.team_inbox(asked).boxed()).await
    }

    /// A turn has one result, however often it is reported.
    pub(crate) async fn report(&self, success: bool, result: String) -> Result<(), ClientError> {
        let (team_id, worker_session_id) = (self.team, self.session);
        let asked = WorkerResult { team_id, worker_session_id, success, result };
        self.again(|server| server.report(asked.clone()).boxed()).await
    }

    /// Asks for something that is not to happen twice: when the server is lost in the middle, who
    /// asked has to find out whether it has happened.
    async fn once<T>(
        &self,
        ask: impl FnOnce(&mut Workspace) -> BoxFuture<'_, Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let _room = self.room.acquire().await;
        let mut server = self.connect(Instant::now() + PATIENCE).await?;
        ask(&mut server).await
    }

    /// Asks for something that may be asked as often as it takes.
    async fn again<T>(
        &self,
        mut ask: impl FnMut(&mut Workspace) -> BoxFuture<'_, Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let _room = self.room.acquire().await;
        for _ in 1..TRIES {
            let mut server = self.connect(Instant::now() + PATIENCE).await?;
            match ask(&mut server).await {
                Err(ClientError::Unreachable { .. }) => {}
                other => return other,
            }
        }
        ask(&mut self.connect(Instant::now() + PATIENCE).await?).await
    }

    async fn connect(&self, deadline: Instant) -> Result<Workspace, ClientError> {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(3));
        loop {
            match Workspace::connect(&self.address).await {
                Err(error) if error.is_unreachable() && Instant::now() < deadline => {
                    sleep(backoff.next(rand::random())).await;
                }
                other => return other,
            }
        }
    }
}
