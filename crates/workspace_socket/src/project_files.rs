//! Access to the files of projects, as the projects' users.

use std::{sync::Arc, time::Duration};

use files::{FileError, Root, write::TemporaryFiles};
use protocol::workspace::ProjectId;
use tokio::{sync::Semaphore, task, time::timeout};
use workspace::{Projects, Refusal};

use crate::uploads::Uploads;

/// The longest wait for a turn, and then for the work: a directory may be mounted from a machine
/// that is gone.
const WITHIN: Duration = Duration::from_secs(15 * 60);

/// The most requests about files that are worked on at the same time, for all clients.
const AT_ONCE: usize = 64;

pub(crate) struct ProjectFiles {
    pub(crate) projects: Arc<Projects>,
    /// The list of files that are being written; `None` if it cannot be kept.
    pub(crate) temporary_files: Option<Arc<TemporaryFiles>>,
    /// Bounds the threads that work on files, for all clients together.
    pub(crate) turns: Arc<Semaphore>,
    /// The uploads that come in parts.
    pub(crate) uploads: Uploads,
}

impl ProjectFiles {
    pub(crate) fn new(
        projects: Arc<Projects>,
        temporary_files: Option<Arc<TemporaryFiles>>,
    ) -> Self {
        let (turns, uploads) = (Arc::new(Semaphore::new(AT_ONCE)), Uploads::default());
        Self { projects, temporary_files, turns, uploads }
    }

    /// Waits for a turn, then runs blocking work on a thread.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = timeout(WITHIN, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| not_answering())?.map_err(|error| Refusal::failed(&error))?;
        let files = Arc::clone(self);
        let working = task::spawn_blocking(move || {
            // The thread keeps its turn even if nobody waits for it any more. Otherwise directories
            // that hang would use up all threads.
            let _turn = turn;
            work(&files)
        });
        let worked = timeout(WITHIN, working).await;
        worked.map_err(|_| not_answering())?.map_err(|error| Refusal::failed(&error))?
    }

    /// Calls `act` with a project's directory, as the project's user.
    pub(crate) fn act<T: Send>(
        &self,
        project: ProjectId,
        act: impl FnOnce(&Root) -> Result<T, FileError> + Send,
    ) -> Result<T, Refusal> {
        self.try_act(project, act)?.map_err(|error| Refusal::failed(&error))
    }

    /// As [`ProjectFiles::act`], for callers that handle a [`FileError`] themselves.
    pub(crate) fn try_act<T: Send>(
        &self,
        project: ProjectId,
        act: impl FnOnce(&Root) -> Result<T, FileError> + Send,
    ) -> Result<Result<T, FileError>, Refusal> {
        let folder = self.projects.folder(project)?;
        let act = || {
            let root = Root::open(&folder.dir)?;
            act(&match &self.temporary_files {
                Some(temporary_files) => root.noting(temporary_files),
                None => root,
            })
        };
        match &folder.user {
            None => Ok(act()),
            Some(user) => process::as_user(user, act).map_err(|error| Refusal::failed(&error)),
        }
    }
}

fn not_answering() -> Refusal {
    Refusal::invalid("the files do not answer")
}
