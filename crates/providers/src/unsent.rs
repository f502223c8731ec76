//! What of a request is not sent yet.

use std::sync::{Arc, Mutex, PoisonError};

/// What of a request is not sent yet, shared by the link's queue and by whoever may cancel the job.
/// Empty once all of it is sent, or is no longer to be sent: it is kept for neither.
pub(crate) struct Unsent<T>(Arc<Mutex<Option<T>>>);

impl<T> Unsent<T> {
    pub(crate) fn new(request: T) -> Self {
        Self(Arc::new(Mutex::new(Some(request))))
    }

    /// No more of it is sent.
    pub(crate) fn clear(&self) {
        // Freed here, after the lock.
        drop(self.take());
    }

    /// All of it, to be sent now.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Clone> Unsent<T> {
    /// What is to be sent still.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for Unsent<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
