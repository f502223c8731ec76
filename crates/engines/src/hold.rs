//! The use of a model by one request.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use backend::{BackendError, Hold};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::watch, time::timeout};

use crate::shared::Shared;

/// How long after a broken connection the end of its server is seen.
const END_SEEN: Duration = Duration::from_secs(1);

/// Keeps a model loaded.
pub(crate) struct EngineHold {
    shared: Arc<Shared>,
    model: Arc<str>,
    generation: u64,
    ended: watch::Receiver<Option<Arc<str>>>,
    answered: AtomicBool,
}

impl EngineHold {
    pub(crate) fn new(
        shared: Arc<Shared>,
        model: Arc<str>,
        generation: u64,
        ended: watch::Receiver<Option<Arc<str>>>,
    ) -> Self {
        Self { shared, model, generation, ended, answered: AtomicBool::new(false) }
    }
}

impl Hold for EngineHold {
    fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    fn why_ended(&self) -> BoxFuture<'_, Option<BackendError>> {
        async {
            let mut ended = self.ended.clone();
            let seen = timeout(END_SEEN, ended.wait_for(Option::is_some)).await.ok()?.ok()?;
            let reason = seen.clone()?;
            Some(BackendError::Engine { model: Arc::clone(&self.model), reason, busy: false })
        }
        .boxed()
    }
}

impl Drop for EngineHold {
    fn drop(&mut self) {
        let answered = self.answered.load(Ordering::Relaxed);
        self.shared.release(&self.model, self.generation, answered);
    }
}

impl fmt::Debug for EngineHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHold").field("model", &self.model).finish_non_exhaustive()
    }
}
