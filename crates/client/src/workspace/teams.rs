//! Teams: creating them, giving work to their members, messages between members.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, ServerMessage, Team, TeamId,
    client::{
        Assign, CreateTeam, GetTeamInbox, Handoff, HandoffResult, OfTeam, RelayTeamMessage,
        SpawnWorker, TeamCreated, TeamInbox, TeamWait, TeamWaitResult, WorkerAssigned,
        WorkerResult, WorkerSpawned,
    },
};

use super::{
    answer::Answer,
    connection::Workspace,
    sessions::{SOON, WORK},
};
use crate::error::ClientError;

/// How long the server may wait for team workers when the request has no time-out.
const WAITS: Duration = Duration::from_secs(15 * 60);

/// The outcome of a wait for team workers.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamReport {
    /// The workers that have reported, and those that have not.
    pub answer: TeamWaitResult,
    /// The results of the workers that have reported.
    pub results: Vec<WorkerResult>,
}

impl Workspace {
    /// The teams.
    ///
    /// # Errors
    /// As [`Workspace::request`]; this holds for all methods below, too.
    pub async fn teams(&mut self) -> Result<Vec<Team>, ClientError> {
        self.request(&ClientMessage::ListTeams, SOON, teams).await
    }

    /// One team.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn team(&mut self, team_id: TeamId) -> Result<Team, ClientError> {
        let request = ClientMessage::GetTeam(OfTeam { team_id });
        let found = self.request(&request, SOON, teams).await?;
        let missing = || ClientError::NotFound { words: format!("there is no team {team_id}") };
        found.into_iter().find(|team| team.id == team_id).ok_or_else(missing)
    }

    /// Creates a team and its leader.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create_team(&mut self, new: CreateTeam) -> Result<TeamCreated, ClientError> {
        let name = new.name.clone();
        let request = ClientMessage::CreateTeam(Box::new(new));
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::TeamCreated(made) if made.team.name == name => Answer::Is(made),
            other => other.into(),
        })
        .await
    }

    /// Deletes a team, and ends its sessions.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn delete_team(&mut self, team_id: TeamId) -> Result<(), ClientError> {
        let request = ClientMessage::DeleteTeam(OfTeam { team_id });
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::TeamDeleted(of) if of.team_id == team_id => Answer::Is(()),
            other => other.into(),
        })
        .await
    }

    /// Creates a team worker without work.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn spawn_worker(&mut self, new: SpawnWorker) -> Result<WorkerSpawned, ClientError> {
        let team_id = new.team_id;
        let request = ClientMessage::SpawnWorker(Box::new(new));
        self.request(&request, WORK, |reply| match reply {
            ServerMessage::WorkerSpawned(made) if made.team.id == team_id => Answer::Is(made),
            other => other.into(),
        })
        .await
    }

    /// Gives work to a new team worker.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn assign(&mut self, work: Assign) -> Result<WorkerAssigned, ClientError> {
        let team_id = work.team_id;
        self.request(&ClientMessage::Assign(work), WORK, |reply| match reply {
            ServerMessage::WorkerAssigned(of) if of.team_id == team_id => Answer::Is(of),
            other => other.into(),
        })
        .await
    }

    /// Gives work to a new team worker, and waits for its result for as long as `work` says. The
    /// answer says whether there is a result.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn handoff(&mut self, work: Handoff) -> Result<HandoffResult, ClientError> {
        let (team_id, within) = (work.team_id, patience(work.timeout_ms));
        self.request(&ClientMessage::Handoff(work), within, |reply| match reply {
            ServerMessage::HandoffResult(result) if result.team_id == team_id => Answer::Is(result),
            other => other.into(),
        })
        .await
    }

    /// Waits for team workers to report, for as long as `wait` says. The answer says which workers
    /// have reported.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or wait.
    pub async fn team_wait(&mut self, wait: TeamWait) -> Result<TeamReport, ClientError> {
        let (team_id, within) = (wait.team_id, patience(wait.timeout_ms));
        let mut results = Vec::new();
        let request = ClientMessage::TeamWait(wait);
        let answer = self.request(&request, within, |reply| match reply {
            ServerMessage::TeamWaitResult(result) if result.team_id == team_id => {
                Answer::Is(result)
            }
            ServerMessage::WorkerResultReceived(result) if result.team_id == team_id => {
                results.push(result.clone());
                // It is no answer: a caller that listens gets it, too.
                ServerMessage::WorkerResultReceived(result).into()
            }
            other => other.into(),
        });
        let answer = answer.await?;
        // The results of workers that reported earlier are only in the answer.
        for result in &answer.results {
            if results.iter().all(|known| known.worker_session_id != result.worker_session_id) {
                results.push(result.clone());
            }
        }
        Ok(TeamReport { answer, results })
    }

    /// Sends a message to a member. Returns its number, once the server has stored it.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or member.
    pub async fn relay(&mut self, message: RelayTeamMessage) -> Result<u64, ClientError> {
        let team_id = message.team_id;
        self.request(&ClientMessage::RelayTeamMessage(message), SOON, |reply| match reply {
            ServerMessage::TeamMessageSent(sent) if sent.team_id == team_id => Answer::Is(sent.seq),
            other => other.into(),
        })
        .await
    }

    /// The messages that a member was sent.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or member.
    pub async fn team_inbox(&mut self, request: GetTeamInbox) -> Result<TeamInbox, ClientError> {
        self.request(&ClientMessage::GetTeamInbox(request), SOON, |reply| match reply {
            ServerMessage::TeamInbox(inbox) if inbox.session_id == request.session_id => {
                Answer::Is(inbox)
            }
            other => other.into(),
        })
        .await
    }

    /// Reports the result of a team worker's work.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or member.
    pub async fn report(&mut self, result: WorkerResult) -> Result<(), ClientError> {
        let (team, worker) = (result.team_id, result.worker_session_id);
        self.request(&ClientMessage::ReportResult(result), SOON, |reply| match reply {
            ServerMessage::WorkerResultReceived(of)
                if (of.team_id, of.worker_session_id) == (team, worker) =>
            {
                Answer::Is(())
            }
            other => other.into(),
        })
        .await
    }
}

fn teams(reply: ServerMessage) -> Answer<Vec<Team>> {
    match reply {
        ServerMessage::TeamList(list) => Answer::Is(list.teams),
        other => other.into(),
    }
}

/// The deadline of a request for which the server itself waits this long.
fn patience(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(WAITS, Duration::from_millis).saturating_add(WORK)
}
