//! The requests to the server, in the name of a member of a team.
//!
//! Each request has a connection of its own. A model calls several tools at once and some of them
//! wait for long; and a connection that is kept open unused would have to be read all the same.
//! Members run on the server's machine, where a connection costs next to nothing.

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

use crate::arguments;

/// How long to retry a server that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most attempts of a request that may be repeated, if the connection breaks each time.
const TRIES: usize = 5;
/// The most requests at the same time.
const AT_ONCE: usize = 16;

/// A member of a team, and the server that it talks to.
pub(crate) struct Member {
    address: Address,
    pub(crate) team: TeamId,
    pub(crate) session: SessionId,
    room: Semaphore,
}

impl Member {
    pub(crate) fn new(address: Address, team: TeamId, session: SessionId) -> Self {
        Self { address, team, session, room: Semaphore::new(AT_ONCE) }
    }

    pub(crate) async fn handoff(
        &self,
        work: arguments::Assign,
        timeout: Duration,
    ) -> Result<HandoffResult, ClientError> {
        let arguments::Assign { prompt, worker_name, provider, node: node_id, working_dir } = work;
        let request = Handoff {
            team_id: self.team,
            prompt,
            worker_name,
            timeout_ms: Some(base::millis(timeout)),
            provider,
            mode: None,
            working_dir,
            node_id,
        };
        self.once(|server| server.handoff(request).boxed()).await
    }

    pub(crate) async fn assign(
        &self,
        work: arguments::Assign,
    ) -> Result<WorkerAssigned, ClientError> {
        let arguments::Assign { prompt, worker_name, provider, node: node_id, working_dir } = work;
        let request = Assign {
            team_id: self.team,
            prompt,
            worker_name,
            provider,
            mode: None,
            working_dir,
            node_id,
        };
        self.once(|server| server.assign(request).boxed()).await
    }

    pub(crate) async fn send(
        &self,
        to: Option<SessionId>,
        payload: String,
    ) -> Result<u64, ClientError> {
        let (team_id, from_session_id) = (self.team, self.session);
        let request = RelayTeamMessage { team_id, from_session_id, to_session_id: to, payload };
        self.once(|server| server.relay(request).boxed()).await
    }

    /// May be repeated: the second answer is the same as the first.
    pub(crate) async fn wait(&self, wait: &TeamWait) -> Result<TeamWaitResult, ClientError> {
        let waited = self.again(|server| server.team_wait(wait.clone()).boxed()).await;
        waited.map(|reported| reported.answer)
    }

    pub(crate) async fn inbox(&self, since_seq: Option<u64>) -> Result<TeamInbox, ClientError> {
        let request = GetTeamInbox { team_id: self.team, session_id: self.session, since_seq };
        self.again(|server| server.team_inbox(request).boxed()).await
    }

    /// May be repeated: a turn has one result, however often it is reported.
    pub(crate) async fn report(&self, success: bool, result: String) -> Result<(), ClientError> {
        let (team_id, worker_session_id) = (self.team, self.session);
        let request = WorkerResult { team_id, worker_session_id, success, result };
        self.again(|server| server.report(request.clone()).boxed()).await
    }

    /// Sends a request that must not be done twice. If the connection breaks in the middle, the
    /// caller has to find out whether the request was done.
    async fn once<T>(
        &self,
        ask: impl FnOnce(&mut Workspace) -> BoxFuture<'_, Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let _room = self.room.acquire().await;
        let mut server = self.connect(Instant::now() + PATIENCE).await?;
        ask(&mut server).await
    }

    /// Sends a request that may be repeated, [`TRIES`] times at most.
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
