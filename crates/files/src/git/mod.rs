//! Status and diff of the repository that a project is in, by running `git`.
//!
//! Nothing is changed and nothing of the repository's own is executed: no hooks, no file-system
//! monitor, no pager, external diff or text conversion, no filter that the repository itself names
//! (those of the user's and the system's configuration stay), no look into submodules' work trees,
//! no network. `git` runs with an environment of its own, in a process group of its own, for a
//! bounded time and output, once at a time for a repository.
//!
//! One thing remains with the system: who writes the repository's configuration while git starts
//! could name a filter in that moment. Run git as the project's user, and that is all it gains.
//! So it is with what git reads: a repository's own directory may lead it to other files, and git
//! shows of them what that user may read.
//!
//! - [`status`]: what git says of a work tree, and the pure reading of it
//! - `diff`: what changed in one file
//! - `run`: one process, its time, its output, its end
//! - `disarm`: what is said to git so that it executes nothing
//! - `place`: where the repository of a project is
//! - `turns`: one at a time for a repository
//! - `error`: why git could not be asked

mod diff;
mod disarm;
mod error;
mod place;
mod run;
pub mod status;
#[cfg(test)]
mod tests;
mod turns;

use std::{ffi::OsString, fmt, io, path::Path, sync::Arc, time::Duration};

use tokio::{process::Command, sync::Semaphore};

pub use self::{error::GitError, status::Status};
use self::{place::Place, turns::Turns};
use crate::path::RelPath;

/// The variables of this process that git is given.
const PASSED_ON: [&str; 7] =
    ["PATH", "HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "LANG"];

/// How long git may take, how much it may say, and how many run at once.
#[derive(Debug, Clone)]
pub struct GitSettings {
    /// How long one command may take, of the three that a request has. A request may wait as long
    /// for the others of its repository, and a command for those of all.
    pub time_out: Duration,
    /// The longest output of one command, in bytes.
    pub max_output: usize,
    /// How many commands run at once.
    pub at_once: usize,
}

impl Default for GitSettings {
    fn default() -> Self {
        Self { time_out: Duration::from_secs(20), max_output: 8 << 20, at_once: 4 }
    }
}

/// How git is started: as whom, and with which environment.
#[derive(Clone)]
pub struct Runner {
    /// The words that start it: `git`, or something that takes its place.
    pub command: Vec<OsString>,
    /// All of its environment, beside what this crate adds.
    pub env: Vec<(OsString, OsString)>,
    /// Has each command run as another user. The project's directory has to be one without links
    /// then: only that user may find out where they lead.
    pub as_user: Option<Become>,
}

/// Has a command run as somebody else.
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

/// What is in the environment is nobody's business.
impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Asks git. One for a daemon: clones share their turns.
#[derive(Debug, Clone)]
pub struct Git {
    settings: GitSettings,
    turns: Arc<Turns>,
    running: Arc<Semaphore>,
}

impl Git {
    /// With these settings.
    #[must_use]
    pub fn new(settings: GitSettings) -> Self {
        let running = Arc::new(Semaphore::new(settings.at_once.max(1)));
        Self { settings, turns: Arc::new(Turns::default()), running }
    }

    /// What git says of the work tree that a project is in; none when it is in no repository (or in
    /// a bare one). Of a project in a part of a work tree, that part is told.
    ///
    /// # Errors
    ///
    /// [`GitError`], also when there is no git.
    pub async fn status(&self, root: &Path, runner: &Runner) -> Result<Option<Status>, GitError> {
        let Some(place) = self.place(root, runner).await? else { return Ok(None) };
        let _turn = self.turn(&place).await?;
        let args = place.disarmed(self, runner).await?.status();
        let output = self.run(runner, &place.root, &args).await?.succeeded()?;
        status::parse(&output, place.prefix()).map(Some).map_err(GitError::from)
    }

    /// The unified diff of one file or directory: what is staged, or what is not. A file that git
    /// does not know has none, and what is not UTF-8 in it is replaced.
    ///
    /// # Errors
    ///
    /// [`GitError`]; [`GitError::NoRepository`] when the project is in none.
    pub async fn diff(
        &self,
        root: &Path,
        path: &RelPath,
        staged: bool,
        runner: &Runner,
    ) -> Result<String, GitError> {
        let place = self.place(root, runner).await?.ok_or(GitError::NoRepository)?;
        let _turn = self.turn(&place).await?;
        let args = place.disarmed(self, runner).await?.diff(path, staged);
        let output = self.run(runner, &place.root, &args).await?.succeeded()?;
        Ok(diff::text(output))
    }

    async fn place(&self, root: &Path, runner: &Runner) -> Result<Option<Place>, GitError> {
        Place::find(self, root, runner).await
    }
}

impl Default for Git {
    fn default() -> Self {
        Self::new(GitSettings::default())
    }
}
