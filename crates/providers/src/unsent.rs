//! The unsent part of a request.

use std::sync::{Arc, Mutex, PoisonError};

/// The unsent part of a request, shared by the link's queue and the scheduler's side, which may
/// cancel the job. It is empty once all is sent or nothing more may be sent, so that neither side
/// keeps the body in memory.
pub(crate) struct UnsentRequest<T>(Arc<Mutex<Option<T>>>);

impl<T> UnsentRequest<T> {
    pub(crate) fn new(request: T) -> Self {
        Self(Arc::new(Mutex::new(Some(request))))
    }

    /// Drops the rest, so that it is not sent.
    pub(crate) fn clear(&self) {
        // Frees it outside the lock.
        drop(self.take());
    }

    /// Takes the rest to send it now.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Clone> UnsentRequest<T> {
    /// The rest, without taking it.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for UnsentRequest<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
