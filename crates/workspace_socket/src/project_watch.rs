//! Reports the changes of one project's files to one client.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use files::{
    Watch,
    watch::{Limits, Work},
};
use process::User;
use protocol::workspace::{ProjectId, ServerMessage, client::OfProject};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use wire::Outbox;
use workspace::{ProjectFolder, Refusal};

use crate::{
    family::Family,
    services::{WATCHES, WatchBudget},
};

/// The longest time that a new watch waits for the end of the earlier one, when there are too many.
const EARLIER_ENDS: Duration = Duration::from_secs(5);

/// The watch of a connection, which covers one project at a time.
#[derive(Clone, Default)]
pub(crate) struct ProjectWatch(Arc<Mutex<Option<ActiveWatch>>>);

struct ActiveWatch {
    project: ProjectId,
    _task: AbortOnDropHandle<()>,
}

impl ProjectWatch {
    /// Watches this project instead of the one before. Changes after this returns are reported.
    pub(crate) async fn start(
        &self,
        budget: &WatchBudget,
        project: ProjectId,
        folder: &ProjectFolder,
        outbox: Outbox,
    ) -> Result<(), Refusal> {
        // The earlier watch ends first, so that its permit becomes free for the new one.
        let had_watch = self.lock().take().is_some();
        let permit = permit(budget, had_watch).await?;
        let begin = |work| begin(folder.user.clone(), permit, work);
        let (limits, all) = (Limits::default(), &budget.directories);
        let watch = Watch::start_on(&folder.dir, limits, all, begin).await;
        let watch = watch.map_err(|error| Refusal::failed(&error))?;
        let task = tokio::spawn(tell(watch, project, outbox).in_current_span());
        *self.lock() = Some(ActiveWatch { project, _task: AbortOnDropHandle::new(task) });
        Ok(())
    }

    pub(crate) fn end(&self, project: ProjectId) {
        self.lock().take_if(|watched| watched.project == project);
    }

    /// Ends the watch, if there is one.
    pub(crate) fn end_all(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<ActiveWatch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for a watch. The thread of the connection's earlier watch gives its own permit back only when it ends.
async fn permit(budget: &WatchBudget, had_watch: bool) -> Result<OwnedSemaphorePermit, Refusal> {
    let projects = || Arc::clone(&budget.projects);
    let refused = || Refusal::TooMany { what: "watches", most: WATCHES };
    match projects().try_acquire_owned() {
        Ok(permit) => Ok(permit),
        Err(_) if had_watch => match timeout(EARLIER_ENDS, projects().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(refused()),
        },
        Err(_) => Err(refused()),
    }
}

/// Starts the thread of a watch, with the rights of the project's user. The thread keeps its permit
/// until it ends: it may still be reading a large tree when its watch is over.
fn begin(user: Option<User>, permit: OwnedSemaphorePermit, work: Work) -> io::Result<()> {
    let watching = move || {
        let _counted = permit;
        let Some(user) = user else { return work() };
        if let Err(error) = process::as_user(&user, work) {
            tracing::error!(user = user.name, %error, "a project cannot be watched as its user");
        }
    };
    // A thread of its own, since rights belong to a thread.
    thread::Builder::new().name("watch".to_owned()).spawn(watching).map(drop)
}

async fn tell(mut watch: Watch, project_id: ProjectId, outbox: Outbox) {
    let changed = ServerMessage::ProjectFilesChanged(OfProject { project_id }).encode();
    while watch.changed().await.is_some() {
        if outbox.send(changed.clone()).await.is_err() {
            return;
        }
    }
    let family = Family::File(project_id, String::new());
    let ended = family.error("the project is not watched any more: ask again".to_owned());
    let _gone = outbox.send(ended.encode()).await;
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_watch_takes_the_place_of_the_earlier_one_also_when_there_are_no_more() {
        let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let budget =
            WatchBudget { projects: Arc::new(Semaphore::new(1)), ..WatchBudget::default() };
        let (outbox, _reader) = Outbox::detached();
        let start = async |watch: &ProjectWatch, dir: &TempDir| {
            let folder = ProjectFolder { dir: dir.path().to_owned(), user: None };
            watch.start(&budget, ProjectId::from_random(1), &folder, outbox.clone()).await
        };
        let watch = ProjectWatch::default();
        assert!(start(&watch, &one).await.is_ok());
        assert!(start(&watch, &other).await.is_ok());
        let another = start(&ProjectWatch::default(), &one).await;
        assert!(matches!(another, Err(Refusal::TooMany { .. })), "it has no place to take");
    }
}
