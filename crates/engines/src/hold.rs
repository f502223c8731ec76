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
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::shared::Shared;

/// How long, after a connection broke, to wait for news that its server has ended.
const END_SEEN: Duration = Duration::from_secs(1);

/// Keeps a model loaded.
pub(crate) struct EngineHold {
    pub(crate) shared: Arc<Shared>,
    pub(crate) model: Arc<str>,
    /// The number of the start of its server.
    pub(crate) generation: u64,
    /// Gets the reason once its server has ended.
    pub(crate) ended: watch::Receiver<Option<Arc<str>>>,
    /// Makes the server's task check whether the server still answers.
    pub(crate) doubt: Arc<Notify>,
    pub(crate) answered: AtomicBool,
}

impl Hold for EngineHold {
    fn answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    fn doubt(&self) {
        self.doubt.notify_one();
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
