//! What git says of projects.

use std::{path::Path, sync::Arc};

use files::{Git, GitError, RelPath, Runner, git::Status};
use process::User;
use protocol::workspace::{
    ClientMessage, GitStatus, ServerMessage,
    client::{GitDiff, GitDiffResult},
};
use tokio::{runtime::Builder, task};

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
    let git = shared.door.git.clone();
    let Some(user) = place.user else {
        let said = question.put(&git, &place.dir, &Runner::own()).await;
        return said.map_err(|error| Refusal::failed(&error));
    };
    let asking = move || ask_as(&user, &git, &place.dir, question);
    task::spawn_blocking(asking).await.map_err(|error| Refusal::failed(&error))?
}

/// Asks as another user. What a thread starts has the thread's rights, so that all of git, and what
/// it may be made to run, is that user's.
fn ask_as(user: &User, git: &Git, root: &Path, question: Question) -> Result<Said, Refusal> {
    let env = process::clean_environment(&[], user);
    let runner = Runner { command: vec!["git".into()], env };
    let asked = process::as_user(user, || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Refusal::failed(&error))?;
        let said = runtime.block_on(question.put(git, root, &runner));
        said.map_err(|error| Refusal::failed(&error))
    });
    asked.map_err(|error| Refusal::failed(&error))?
}

fn not_asked() -> Refusal {
    Refusal::invalid("git answered something else")
}
