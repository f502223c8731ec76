//! Requests about the git repositories of projects.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::{RelPath, Runner};
use process::User;
use protocol::workspace::{
    ServerMessage,
    client::{GitDiff, GitDiffResult, OfProject},
};
use tokio::{process::Command, task};
use workspace::{ProjectFolder, Refusal};

use super::asker::{Answer, Asker};

pub(crate) async fn status(asker: &Asker, request: OfProject) -> Answer {
    let project_id = request.project_id;
    let folder = asker.services.projects.folder_soon(project_id).await?;
    let (dir, runner) = as_its_user(folder).await?;
    let status = asker.services.git.status(project_id, &dir, &runner).await;
    let status = status.map_err(|error| Refusal::failed(&error))?;
    Ok(Some(ServerMessage::GitStatusResult(status)))
}

pub(crate) async fn diff(asker: &Asker, request: GitDiff) -> Answer {
    let folder = asker.services.projects.folder_soon(request.project_id).await?;
    let GitDiff { project_id, path, staged } = request;
    let within = RelPath::parse(&path).map_err(|error| Refusal::failed(&error))?;
    let (dir, runner) = as_its_user(folder).await?;
    let patch = asker.services.git.diff(&dir, &within, staged, &runner).await;
    let patch = patch.map_err(|error| Refusal::failed(&error))?;
    let result = GitDiffResult { project_id, path, staged, patch };
    Ok(Some(ServerMessage::GitDiffResult(result)))
}

/// A project's directory, and git as its user.
async fn as_its_user(folder: ProjectFolder) -> Result<(PathBuf, Runner), Refusal> {
    let Some(user) = folder.user else { return Ok((folder.dir, Runner::own())) };
    let found = task::spawn_blocking(move || (real(&user, &folder.dir), runner(user))).await;
    let (dir, runner) = found.map_err(|error| Refusal::failed(&error))?;
    Ok((dir?, runner))
}

/// The real path of a directory, found with the rights of its user.
fn real(user: &User, dir: &Path) -> Result<PathBuf, Refusal> {
    let real = process::as_user(user, || fs::canonicalize(dir));
    let real = real.map_err(|error| Refusal::failed(&error))?;
    real.map_err(|error| {
        Refusal::Failed(format!("the project's directory cannot be opened: {error}"))
    })
}

/// Runs git, and every program that git starts, as another user.
fn runner(user: User) -> Runner {
    let env = process::clean_environment(&[], &user);
    let become_user =
        move |command: &mut Command| process::start_as(&user, command).map_err(io::Error::other);
    Runner { command: vec!["git".into()], env, as_user: Some(Arc::new(become_user)) }
}
