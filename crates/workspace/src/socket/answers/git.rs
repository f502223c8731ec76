//! What git says of projects.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::{Git, GitError, RelPath, Runner, git::Status};
use process::User;
use protocol::workspace::{
    ClientMessage, GitStatus, ServerMessage,
    client::{GitDiff, GitDiffResult},
};
use tokio::{process::Command, task};

use crate::{projects::Place, refusal::Refusal, work::Shared};

pub(super) async fn answer(
    shared: &Arc<Shared>,
    message: ClientMessage,
) -> Result<ServerMessage, Refusal> {
    match message {
        ClientMessage::GitStatus(of) => {
            let place = super::place(shared, of.project_id).await?;
            let Said::Status(status) = ask(shared, place, Question::Status).await? else {
                return Err(not_asked());
            };
            let nothing = || GitStatus::no_repository(of.project_id);
            let status = status.map_or_else(nothing, |status| status.of(of.project_id));
            Ok(ServerMessage::GitStatusResult(status))
        }
        ClientMessage::GitDiff(diff) => {
            let place = super::place(shared, diff.project_id).await?;
            let GitDiff { project_id, path, staged } = diff;
            let within = RelPath::parse(&path).map_err(|error| Refusal::failed(&error))?;
            let Said::Diff(patch) = ask(shared, place, Question::Diff(within, staged)).await?
            else {
                return Err(not_asked());
            };
            let result = GitDiffResult { project_id, path, staged, patch };
            Ok(ServerMessage::GitDiffResult(result))
        }
        other => Err(Refusal::Invalid(format!("{} is not for git", other.name()))),
    }
}

enum Question {
    Status,
    Diff(RelPath, bool),
}

enum Said {
    Status(Option<Status>),
    Diff(String),
}

impl Question {
    async fn put(self, git: &Git, root: &Path, runner: &Runner) -> Result<Said, GitError> {
        match self {
            Self::Status => git.status(root, runner).await.map(Said::Status),
            Self::Diff(path, staged) => git.diff(root, &path, staged, runner).await.map(Said::Diff),
        }
    }
}

async fn ask(shared: &Shared, place: Place, question: Question) -> Result<Said, Refusal> {
    let (dir, runner) = match place.user {
        None => (place.dir, Runner::own()),
        Some(user) => {
            let found = task::spawn_blocking(move || (real(&user, &place.dir), runner(user))).await;
            let (dir, runner) = found.map_err(|error| Refusal::failed(&error))?;
            (dir?, runner)
        }
    };
    let said = question.put(&shared.door.git, &dir, &runner).await;
    said.map_err(|error| Refusal::failed(&error))
}

/// Where a directory really is, as far as its user may find out.
fn real(user: &User, dir: &Path) -> Result<PathBuf, Refusal> {
    let real = process::as_user(user, || fs::canonicalize(dir));
    let real = real.map_err(|error| Refusal::failed(&error))?;
    real.map_err(|error| {
        Refusal::Failed(format!("the project's directory cannot be opened: {error}"))
    })
}

/// Has all of git, and what it may be made to run, be another user's.
fn runner(user: User) -> Runner {
    let env = process::clean_environment(&[], &user);
    let become_user =
        move |command: &mut Command| process::start_as(&user, command).map_err(io::Error::other);
    Runner { command: vec!["git".into()], env, as_user: Some(Arc::new(become_user)) }
}

fn not_asked() -> Refusal {
    Refusal::invalid("git answered something else")
}
