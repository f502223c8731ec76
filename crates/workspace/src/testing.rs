//! A workspace for tests: with a supervisor of its own, a store in memory and a directory that is
//! removed at the end.

use std::{path::PathBuf, sync::Arc, time::Duration};

use access::{Keys, LocalRules, Moment};
use store::VolatileStore;
use tempfile::TempDir;

use crate::{
    Parts, Settings, Workspace,
    sessions::{NewSession, What},
};

/// The longest wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A place where a workspace can be started repeatedly.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) store: Arc<VolatileStore>,
    pub(crate) settings: Settings,
}

impl Site {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(dir.path().join("workspace"));
        settings.stop_grace = Duration::from_millis(500);
        Self { dir, store: Arc::new(VolatileStore::default()), settings }
    }

    pub(crate) async fn started() -> (Self, Workspace) {
        let site = Self::new();
        let workspace = site.start().await;
        (site, workspace)
    }

    /// Ends this workspace, and starts the next one with the data that it has stored.
    pub(crate) async fn restart(&self, workspace: Workspace) -> Workspace {
        workspace.shut_down().await;
        drop(workspace);
        self.start().await
    }

    /// Starts a workspace in this place, where only one may run at a time.
    pub(crate) async fn start(&self) -> Workspace {
        let now = Moment::now();
        let parts = Parts {
            store: self.store.clone(),
            audit: self.store.clone(),
            keys: Keys::open(self.store.clone(), now).unwrap(),
            local: LocalRules::default(),
            supervisor: Some((host(), Vec::new())),
        };
        Workspace::start(self.settings.clone(), parts).await.unwrap()
    }

    pub(crate) fn shell(&self, script: &str) -> NewSession {
        self.command("sh", &["-c", script])
    }

    pub(crate) fn command(&self, command: &str, args: &[&str]) -> NewSession {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        NewSession {
            what: What::Shell { command: command.to_owned(), args: Some(args) },
            name: None,
            working_dir: self.dir.path().to_str().unwrap().to_owned(),
            project_id: None,
            run_as_user: None,
            hidden: false,
            tags: Vec::new(),
            team: None,
            size: None,
        }
    }
}

/// Waits for a future, at most for [`PATIENCE`].
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it took too long")
}

/// The supervisor's program, which cargo builds beside the tests.
fn host() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let host = tests.ancestors().nth(2).unwrap().join("workspace-test-host");
    assert!(host.exists(), "{} is missing: cargo build -p workspace --bins", host.display());
    host
}
