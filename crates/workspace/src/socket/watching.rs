//! Changes of one project's files, told to one client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use files::{Watch, watch::Limits};
use protocol::workspace::{ProjectId, ServerMessage, client::OfProject};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;
use wire::Outbox;

use super::{door::WATCHES, refused::Family};
use crate::{projects::Place, refusal::Refusal, work::Shared};

/// What a connection watches: one project at a time.
#[derive(Clone, Default)]
pub(super) struct Watching(Arc<Mutex<Option<Watched>>>);

struct Watched {
    project: ProjectId,
    _task: AbortOnDropHandle<()>,
}

impl Watching {
    /// Watches this project instead of what was watched before. When this returns, changes are seen.
    pub(super) async fn start(
        &self,
        shared: &Arc<Shared>,
        project: ProjectId,
        place: &Place,
        outbox: Outbox,
    ) -> Result<(), Refusal> {
        *self.lock() = None;
        let permit = Arc::clone(&shared.door.watchers).try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::TooMany { what: "watches", most: WATCHES })?;
        let watch = Watch::start(&place.dir, Limits::default(), &shared.door.watches).await;
        let watch = watch.map_err(|error| Refusal::failed(&error))?;
        let task = tokio::spawn(tell(watch, project, outbox, permit));
        *self.lock() = Some(Watched { project, _task: AbortOnDropHandle::new(task) });
        Ok(())
    }

    /// Watches this project no more, if it does.
    pub(super) fn end(&self, project: ProjectId) {
        self.lock().take_if(|watched| watched.project == project);
    }

    /// Watches nothing any more.
    pub(super) fn end_all(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Watched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tell(
    mut watch: Watch,
    project_id: ProjectId,
    outbox: Outbox,
    _permit: OwnedSemaphorePermit,
) {
    let changed = ServerMessage::ProjectFilesChanged(OfProject { project_id }).encode();
    while watch.changed().await.is_some() {
        if outbox.send(changed.clone()).await.is_err() {
            return;
        }
    }
    let family = Family::File { project_id, path: String::new() };
    let ended = family.error("the project is not watched any more: ask again".to_owned());
    let _gone = outbox.send(ended.encode()).await;
}
