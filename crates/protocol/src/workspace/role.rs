//! Who may send which request.

use std::fmt;

use super::client::ClientMessage;

/// What a client may do; each role may do what those before it may.
///
/// | Role | May |
/// | --- | --- |
/// | read | look: lists, attach, history, files and git of projects, watches, teams and inboxes, the cluster |
/// | write | work: make, type into, rename and end sessions; write files; answer agents; run teams |
/// | admin | reach beyond projects: directories of the host, processes of others, other users; make, change and delete projects; change the cluster |
///
/// Projects are an admin's because they choose directories, users and environments. A terminal
/// runs as the daemon's user in any directory, so that write is trusted with that user's files;
/// reading and writing the files of projects over this protocol stays inside of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// May look.
    Read,
    /// May work.
    Write,
    /// May do everything.
    Admin,
}

impl Role {
    /// All there are, the least first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Its name, as scopes of keys end with it: `workspace:read`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ClientMessage {
    /// The least role that may send this message. See [`Role`].
    ///
    /// Every message is named, so that a new one is given a role on purpose.
    pub fn role(&self) -> Role {
        match self {
            Self::NewSession(new) => running_as(new.run_as_user.as_deref()),
            Self::OpenTerminal(open) => running_as(open.run_as_user.as_deref()),

            Self::Auth(_) | Self::Keepalive => Role::Read,
            Self::ListSessions(_) | Self::Attach(_) | Self::Detach => Role::Read,
            Self::GetHistory(_) | Self::ListProjects => Role::Read,
            Self::ListProjectFiles(_) | Self::ReadProjectFile(_) => Role::Read,
            Self::ReadProjectFileChunk(_) | Self::GitStatus(_) | Self::GitDiff(_) => Role::Read,
            Self::WatchProjectFiles(_) | Self::UnwatchProjectFiles(_) => Role::Read,
            Self::ListTeams | Self::GetTeam(_) | Self::GetTeamInbox(_) => Role::Read,
            Self::ClusterStatus | Self::GetClusterConfig => Role::Read,

            Self::SendInput(_) | Self::TerminalInput(_) | Self::Interrupt(_) => Role::Write,
            Self::Resize(_) | Self::TakeControl(_) => Role::Write,
            Self::KillSession(_) | Self::RenameSession(_) => Role::Write,
            Self::PermissionResponse(_) | Self::WriteProjectFile(_) => Role::Write,
            Self::CreateProjectFile(_) | Self::CreateProjectDirectory(_) => Role::Write,
            Self::MoveProjectEntry(_) | Self::CopyProjectEntry(_) => Role::Write,
            Self::DeleteProjectEntry(_) | Self::UploadProjectFile(_) => Role::Write,
            Self::CreateTeam(_) | Self::SpawnWorker(_) | Self::DeleteTeam(_) => Role::Write,
            Self::RelayTeamMessage(_) | Self::Handoff(_) | Self::Assign(_) => Role::Write,
            Self::TeamWait(_) | Self::ReportResult(_) => Role::Write,

            Self::ListDirectory(_) | Self::AdoptSession(_) => Role::Admin,
            Self::CreateProject(_) | Self::UpdateProject(_) | Self::DeleteProject(_) => Role::Admin,
            Self::UpdateClusterConfig(_) | Self::RenameNode(_) => Role::Admin,
            Self::ForceElection | Self::PromoteNode(_) | Self::TriggerSync => Role::Admin,
        }
    }
}

/// What running something needs. Being another user is for admins.
fn running_as(user: Option<&str>) -> Role {
    match user {
        Some(_) => Role::Admin,
        None => Role::Write,
    }
}
