//! Status and diff of the repository that a project is in, by running `git`.
//!
//! Nothing is changed, and nothing that belongs to the repository is executed: no hooks, no
//! file-system monitor, no pager, no external diff or text conversion, and no filter that the
//! repository itself names. Filters of the user's and the system's configuration are used. The same holds
//! in submodules. Git looks into submodules only if all of them are known. Git does not use the network. `git` runs
//! with an environment and a process group of its own, with bounds on its time and output. Requests for one
//! repository run one at a time.
//!
//! One gap remains: a process that writes the repository's configuration while git starts could add a
//! filter at that moment. Only the system's rights limit that filter: it would run as the project's user, as
//! git does. The same holds for reading: a repository's own directory may point to other files, and
//! git shows those that this user may read.
//!
//! - [`status`]: the status of a work tree, and its parser
//! - `run`: one process of git, from its start to its end
//! - `disarm`: the options that keep git from executing the repository's programs
//! - `work_tree`: the work tree that a project is in
//! - `turns`: one request at a time for a repository

mod disarm;
mod run;
pub mod status;
#[cfg(test)]
mod tests;
mod turns;
mod work_tree;

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use protocol::workspace::{GitStatus, ProjectId};
use tokio::{process::Command, sync::Semaphore};

use self::{disarm::FilterOverrides, status::Unreadable, turns::Turns, work_tree::WorkTree};
use crate::path::RelPath;

/// The variables of this process that are passed on to git.
const PASSED_ON: [&str; 7] =
    ["PATH", "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "LANG"];

/// The reason why there is no status or diff. It is not an error to ask for the status of a
/// directory without a repository.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is not installed.
    #[error("git is not installed, or not on PATH")]
    Missing,
    /// git does not start.
    #[error("git could not be started: {0}")]
    Start(#[source] io::Error),
    /// git's output could not be read.
    #[error("git could not be read: {0}")]
    Read(#[source] io::Error),
    /// git took too long and was ended.
    #[error("git took longer than {} s and was ended", .0.as_secs_f32())]
    TimedOut(Duration),
    /// git's output was too long, and git was ended.
    #[error("git's answer is too large: more than {limit} bytes")]
    TooLarge {
        /// The most bytes that are allowed.
        limit: usize,
    },
    /// Other requests for the repository took too long.
    #[error("git is busy with other requests for this repository; try again")]
    Busy,
    /// git failed.
    #[error("git failed: {0}")]
    Failed(String),
    /// A diff needs a repository.
    #[error("the project is not in a git repository")]
    NoRepository,
    /// The repository's configuration places its work tree somewhere else.
    #[error(
        "the repository's work tree is {}, which the project is not in; unset core.worktree",
        .0.display()
    )]
    Elsewhere(PathBuf),
    /// The repository has a filter whose name cannot be overridden.
    #[error("the repository configures a filter that cannot be switched off: {0}")]
    Filter(String),
    /// git's output has an unknown form.
    #[error("git's answer cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
}

/// Limits of time, output and number of git processes.
#[derive(Debug, Clone)]
pub struct GitSettings {
    /// The time limit of one command. A request runs four commands, and more for submodules. It is also the longest
    /// time that a request waits for other requests for its repository, and that a command waits while
    /// [`at_once`](Self::at_once) others run.
    pub time_out: Duration,
    /// The longest output of one command, in bytes.
    pub max_output: usize,
    /// The most commands that run at once.
    pub at_once: usize,
}

impl Default for GitSettings {
    fn default() -> Self {
        Self { time_out: Duration::from_secs(20), max_output: 8 << 20, at_once: 4 }
    }
}

/// How git is started: the command, the environment and the user.
#[derive(Clone)]
pub struct Runner {
    /// The program and its first arguments: `git`, or a replacement.
    pub command: Vec<OsString>,
    /// The whole environment, except for the variables that this crate adds.
    pub env: Vec<(OsString, OsString)>,
    /// Runs each command as another user. The path of the project's directory must then be free of
    /// links: only that user may find out where links lead.
    pub as_user: Option<Become>,
}

/// Makes a command run as another user.
pub type Become = Arc<dyn Fn(&mut Command) -> io::Result<()> + Send + Sync>;

impl Runner {
    /// `git` as this process's user, with the few variables of this process that it needs.
    #[must_use]
    pub fn own() -> Self {
        let passed = PASSED_ON
            .iter()
            .filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)));
        Self { command: vec!["git".into()], env: passed.collect(), as_user: None }
    }
}

/// Shows only the command, since the environment may hold secrets.
impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Runs git. A daemon has one. Clones share the turns of the repositories and the bound on running commands.
#[derive(Debug, Clone)]
pub struct Git {
    settings: GitSettings,
    turns: Arc<Turns>,
    running: Arc<Semaphore>,
}

impl Git {
    /// Runs git within these limits.
    #[must_use]
    pub fn new(settings: GitSettings) -> Self {
        let running = Arc::new(Semaphore::new(settings.at_once.max(1)));
        Self { settings, turns: Arc::new(Turns::default()), running }
    }

    /// The status of the work tree that a project is in. A project that is a part of a work tree gets the status of
    /// that part. A project without a repository, or in a bare one, gets [`GitStatus::no_repository`].
    ///
    /// # Errors
    ///
    /// [`GitError`], also when there is no git.
    pub async fn status(
        &self,
        project_id: ProjectId,
        root: &Path,
        runner: &Runner,
    ) -> Result<GitStatus, GitError> {
        let Some(tree) = WorkTree::find(self, root, runner).await? else {
            return Ok(GitStatus::no_repository(project_id));
        };
        let _turn = self.turn(&tree).await?;
        let overrides = tree.overrides(self, runner).await?;
        let output = self.ask(runner, &tree, &overrides, FilterOverrides::status).await?;
        status::parse(project_id, &output, tree.prefix()).map_err(GitError::from)
    }

    /// The unified diff of one file or directory, staged or unstaged. It is empty for a file that
    /// git does not track. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// [`GitError`]; [`GitError::NoRepository`] when the project is not in a repository.
    pub async fn diff(
        &self,
        root: &Path,
        path: &RelPath,
        staged: bool,
        runner: &Runner,
    ) -> Result<String, GitError> {
        let tree = WorkTree::find(self, root, runner).await?.ok_or(GitError::NoRepository)?;
        let _turn = self.turn(&tree).await?;
        let overrides = tree.overrides(self, runner).await?;
        let output = self.ask(runner, &tree, &overrides, |with| with.diff(path, staged)).await?;
        // People read the diff, so bytes of another encoding are replaced.
        Ok(String::from_utf8(output)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Runs git in a work tree. A submodule that git cannot read, for example one whose repository is
    /// missing, makes git fail as a whole; then git is asked without looking into submodules.
    async fn ask(
        &self,
        runner: &Runner,
        tree: &WorkTree,
        overrides: &FilterOverrides,
        args: impl Fn(&FilterOverrides) -> Vec<OsString>,
    ) -> Result<Vec<u8>, GitError> {
        let output = self.run(runner, &tree.root, &args(overrides)).await?.succeeded();
        match (output, overrides.not_looking_into()) {
            (Err(GitError::Failed(_)), Some(overrides)) => {
                self.run(runner, &tree.root, &args(&overrides)).await?.succeeded()
            }
            (output, _) => output,
        }
    }
}

impl Default for Git {
    fn default() -> Self {
        Self::new(GitSettings::default())
    }
}
