//! The part of a request that is not sent yet.

use std::sync::{Arc, Mutex, PoisonError};

/// The part of a request that is not sent yet, shared by the link's queue and by the scheduler's side,
/// which may cancel the job. It is empty once all is sent or nothing more may be: neither side then keeps
/// the body in memory.
pub(crate) struct UnsentRequest<T>(Arc<Mutex<Option<T>>>);

impl<T> UnsentRequest<T> {
    pub(crate) fn new(request: T) -> Self {
        Self(Arc::new(Mutex::new(Some(request))))
    }

    /// No more of it is sent.
    pub(crate) fn clear(&self) {
        // Freed outside of the lock.
        drop(self.take());
    }

    /// Takes the rest, to send it now.
    pub(crate) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T: Clone> UnsentRequest<T> {
    /// The rest, which stays.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Clone for UnsentRequest<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
