//! What clients ask for, done.
//!
//! - [`at_once`]: what never waits: keys, prompts, sizes, the cluster
//! - [`lane`], [`later`]: what may wait: where it waits, and how it is done
//! - `talk`: what is said to sessions; `make`: sessions made, listed and ended; `files`, `git`, `host`:
//!   projects' files and their git, the machine's directories; `cluster`: this machine alone

mod cluster;
mod files;
mod git;
mod host;
mod make;
mod talk;

use std::sync::Arc;

use protocol::workspace::{ClientMessage, ServerMessage, SessionId};
use tokio::task;
use wire::Outbox;

use super::{Identity, lanes::Lane, shares::Shares, watching::Watching};
use crate::{projects::Place, refusal::Refusal, sessions::ClientId, work::Shared};

/// What comes of a request; `None`: nothing is to be said, or it is said by other ways.
pub(super) type Answer = Result<Option<ServerMessage>, Refusal>;

/// Who asks, and where from.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) shared: Arc<Shared>,
    pub(super) me: Arc<Identity>,
    pub(super) client: ClientId,
    pub(super) outbox: Outbox,
    pub(super) watching: Watching,
    pub(super) shares: Shares,
    /// What it was attached to when it asked.
    pub(super) attached: Option<SessionId>,
}

/// Where a request waits for its turn; `None` if it is answered at once.
pub(super) fn lane(message: &ClientMessage) -> Option<Lane> {
    use ClientMessage as M;
    Some(match message {
        M::Auth(_) | M::Keepalive | M::Attach(_) | M::Detach => return None,
        M::SendInput(_) | M::TerminalInput(_) | M::Interrupt(_) => return None,
        M::PermissionResponse(_) | M::Resize(_) | M::TakeControl(_) => return None,
        M::ClusterStatus | M::GetClusterConfig | M::UpdateClusterConfig(_) => return None,
        M::RenameNode(_) | M::ForceElection | M::PromoteNode(_) | M::TriggerSync => return None,

        M::ListSessions(_) | M::ListProjects | M::GetHistory(_) => Lane::Look,
        M::ListDirectory(_) => Lane::Look,
        M::NewSession(_) | M::OpenTerminal(_) | M::AdoptSession(_) => Lane::Make,
        M::RenameSession(_) | M::CreateProject(_) | M::UpdateProject(_) => Lane::Make,
        M::DeleteProject(_) => Lane::Make,
        M::KillSession(_) => Lane::Kill,
        M::ListProjectFiles(_) | M::ReadProjectFile(_) | M::ReadProjectFileChunk(_) => Lane::Files,
        M::WriteProjectFile(_) | M::CreateProjectFile(_) | M::CreateProjectDirectory(_) => {
            Lane::Files
        }
        M::MoveProjectEntry(_) | M::CopyProjectEntry(_) | M::DeleteProjectEntry(_) => Lane::Files,
        M::UploadProjectFile(_) | M::WatchProjectFiles(_) | M::UnwatchProjectFiles(_) => {
            Lane::Files
        }
        M::GitStatus(_) | M::GitDiff(_) => Lane::Git,
        M::CreateTeam(_) | M::SpawnWorker(_) | M::RelayTeamMessage(_) | M::ListTeams => Lane::Teams,
        M::GetTeam(_) | M::DeleteTeam(_) | M::Assign(_) | M::GetTeamInbox(_) => Lane::Teams,
        M::ReportResult(_) => Lane::Teams,
        M::Handoff(_) | M::TeamWait(_) => Lane::Waits,
    })
}

/// Whether all are told what comes of it, too.
pub(super) fn is_told_to_all(message: &ClientMessage) -> bool {
    use ClientMessage as M;
    matches!(
        message,
        M::CreateProject(_)
            | M::UpdateProject(_)
            | M::DeleteProject(_)
            | M::DeleteTeam(_)
            | M::ReportResult(_)
    )
}

/// Does what never waits.
pub(super) fn at_once(asker: &Asker, message: ClientMessage) -> Answer {
    match message {
        ClientMessage::Keepalive => Ok(Some(ServerMessage::KeepaliveAck)),
        ClientMessage::Auth(_) => {
            Err(Refusal::invalid("this connection has authenticated already"))
        }
        ClientMessage::ClusterStatus
        | ClientMessage::GetClusterConfig
        | ClientMessage::UpdateClusterConfig(_)
        | ClientMessage::RenameNode(_)
        | ClientMessage::ForceElection
        | ClientMessage::PromoteNode(_)
        | ClientMessage::TriggerSync => cluster::answer(&asker.shared, &message).map(Some),
        said => talk::answer(asker, said),
    }
}

/// Does what may wait.
pub(super) async fn later(asker: Asker, message: ClientMessage) -> Answer {
    let Asker { shared, me, .. } = &asker;
    match lane(&message) {
        Some(Lane::Files) => files::answer(&asker, message).await,
        Some(Lane::Git) => git::answer(shared, message).await.map(Some),
        Some(Lane::Teams | Lane::Waits) => shared.teams.answer(shared, me, message).await.map(Some),
        _ => match message {
            ClientMessage::ListDirectory(list) => host::answer(list).await.map(Some),
            ClientMessage::CreateProject(_)
            | ClientMessage::UpdateProject(_)
            | ClientMessage::DeleteProject(_)
            | ClientMessage::ListProjects => {
                shared.projects.answer(shared, me, message).await.map(Some)
            }
            other => make::answer(&asker, other).await,
        },
    }
}

/// Where a project's files are.
async fn place(shared: &Arc<Shared>, id: protocol::workspace::ProjectId) -> Result<Place, Refusal> {
    let shared = Arc::clone(shared);
    let place = task::spawn_blocking(move || shared.projects.place(id)).await;
    place.map_err(|error| Refusal::failed(&error))?
}
