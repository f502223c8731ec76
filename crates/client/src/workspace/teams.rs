//! Teams: making them, work for their members, messages between those.

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

/// How long a server may wait for team workers, where nobody says how long.
const WAITS: Duration = Duration::from_secs(15 * 60);

/// What came of a wait for team workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// The workers that have reported, and those that have not.
    pub answer: TeamWaitResult,
    /// The results of the workers that have reported.
    pub results: Vec<WorkerResult>,
}

impl Workspace {
    /// The teams.
    ///
    /// # Errors
    /// As [`Workspace::request`], as for all that follow.
    pub async fn teams(&mut self) -> Result<Vec<Team>, ClientError> {
        self.request(&ClientMessage::ListTeams, SOON, teams).await
    }

    /// One team.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is none.
    pub async fn team(&mut self, team_id: TeamId) -> Result<Team, ClientError> {
        let asked = ClientMessage::GetTeam(OfTeam { team_id });
        let found = self.request(&asked, SOON, teams).await?;
        let missing = || ClientError::NotFound { words: format!("there is no team {team_id}") };
        found.into_iter().find(|team| team.id == team_id).ok_or_else(missing)
    }

    /// Makes a team and its leader.
    ///
    /// # Errors
    /// When the server says no.
    pub async fn create_team(&mut self, new: CreateTeam) -> Result<TeamCreated, ClientError> {
        let name = new.name.clone();
        let asked = ClientMessage::CreateTeam(Box::new(new));
        self.request(&asked, WORK, |reply| match reply {
            ServerMessage::TeamCreated(made) if made.team.name == name => Answer::Is(made),
            other => other.into(),
        })
        .await
    }

    /// Deletes a team, and ends its sessions.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is none.
    pub async fn delete_team(&mut self, team_id: TeamId) -> Result<(), ClientError> {
        let asked = ClientMessage::DeleteTeam(OfTeam { team_id });
        self.request(&asked, WORK, |reply| match reply {
            ServerMessage::TeamDeleted(of) if of.team_id == team_id => Answer::Is(()),
            other => other.into(),
        })
        .await
    }

    /// Makes a team worker without work.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team.
    pub async fn spawn_worker(&mut self, new: SpawnWorker) -> Result<WorkerSpawned, ClientError> {
        let team_id = new.team_id;
        let asked = ClientMessage::SpawnWorker(Box::new(new));
        self.request(&asked, WORK, |reply| match reply {
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

    /// Gives work to a new team worker, and waits for what comes of it, for as long as `work` says.
    /// That may not be known by then: the answer says so.
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

    /// Waits for team workers to report, for as long as `wait` says. That may not have happened by
    /// then: the answer says so.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or wait.
    pub async fn team_wait(&mut self, wait: TeamWait) -> Result<Reported, ClientError> {
        let (team_id, within) = (wait.team_id, patience(wait.timeout_ms));
        let mut results = Vec::new();
        let asked = ClientMessage::TeamWait(wait);
        let answer = self.request(&asked, within, |reply| match reply {
            ServerMessage::TeamWaitResult(result) if result.team_id == team_id => {
                Answer::Is(result)
            }
            ServerMessage::WorkerResultReceived(result) if result.team_id == team_id => {
                results.push(result.clone());
                ServerMessage::WorkerResultReceived(result).into()
            }
            other => other.into(),
        });
        let answer = answer.await?;
        // Those that had reported before are in the answer only.
        for result in &answer.results {
            if results.iter().all(|known| known.worker_session_id != result.worker_session_id) {
                results.push(result.clone());
            }
        }
        Ok(Reported { answer, results })
    }

    /// Tells a member something; the message's number, once it is kept.
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

    /// What a member was sent.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such team or member.
    pub async fn team_inbox(&mut self, asked: GetTeamInbox) -> Result<TeamInbox, ClientError> {
        self.request(&ClientMessage::GetTeamInbox(asked), SOON, |reply| match reply {
            ServerMessage::TeamInbox(inbox) if inbox.session_id == asked.session_id => {
                Answer::Is(inbox)
            }
            other => other.into(),
        })
        .await
    }

    /// Says what came of a team worker's work.
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

/// How long to wait for a server that waits so long itself.
fn patience(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(WAITS, Duration::from_millis).saturating_add(WORK)
}
