//! A workspace for tests, also those of the crates above: with a supervisor of its own, a store in memory and a directory that is
//! removed at the end.

use std::{
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use access::{Keys, Moment};
use protocol::workspace::SessionId;
use store::VolatileStore;
use tempfile::TempDir;

use crate::{NewEngine, NewSession, Parts, Settings, TurnFollower, Workspace};

/// The longest wait of a test.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A directory and a store with which a workspace can be started repeatedly.
pub struct Site {
    /// The directory of all that the workspace keeps.
    pub dir: TempDir,
    /// The store.
    pub store: Arc<VolatileStore>,
    /// The settings of the next start.
    pub settings: Settings,
}

impl Default for Site {
    fn default() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(dir.path().join("workspace"));
        settings.stop_grace = Duration::from_millis(500);
        settings.keep_sessions = Duration::ZERO;
        Self { dir, store: Arc::new(VolatileStore::default()), settings }
    }
}

impl Site {
    /// A new site, with the usual settings and a short grace.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new site with a workspace.
    pub async fn started() -> (Self, Workspace) {
        let site = Self::new();
        let workspace = site.start().await;
        (site, workspace)
    }

    /// Ends this workspace, and starts the next one with the data that it has stored.
    pub async fn restart(&self, workspace: Workspace) -> Workspace {
        workspace.shut_down().await;
        drop(workspace);
        self.start().await
    }

    /// Starts a workspace at this site, where only one may run at a time.
    pub async fn start(&self) -> Workspace {
        self.start_with(Weak::<NoTeams>::new()).await
    }

    /// Like [`Site::start`], with teams that follow the turns of their members.
    pub async fn start_with(&self, turns: Weak<dyn TurnFollower>) -> Workspace {
        let now = Moment::now();
        let parts = Parts {
            store: self.store.clone(),
            audit: self.store.clone(),
            keys: Keys::open(self.store.clone(), now).unwrap(),
            turns,
            supervisor: Some((host(), Vec::new())),
        };
        Workspace::start(self.settings.clone(), parts).await.unwrap()
    }

    /// A session that runs a script.
    pub fn shell(&self, script: &str) -> NewSession {
        self.command("sh", &["-c", script])
    }

    /// A session that runs a command.
    pub fn command(&self, command: &str, args: &[&str]) -> NewSession {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let engine = NewEngine::Shell { command: command.to_owned(), args: Some(args) };
        NewSession::new(engine, self.dir.path().to_str().unwrap().to_owned())
    }
}

/// Follows no turns, where there are no teams.
struct NoTeams;

impl TurnFollower for NoTeams {
    fn turn_started(&self, _: SessionId, _: u64) {}

    fn turn_ended(&self, _: SessionId, _: u64, _: bool, _: Option<String>) {}

    fn session_gone(&self, _: SessionId) {}
}

/// Waits for a future, at most for [`PATIENCE`].
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it took too long")
}

/// The supervisor's program, which cargo builds beside the tests.
fn host() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let host = tests.ancestors().nth(2).unwrap().join("workspace-test-host");
    assert!(host.exists(), "{} is missing: cargo build -p workspace --bins", host.display());
    host
}
