//! A value that can be replaced while others use it.

use std::sync::{Arc, PoisonError, RwLock};

/// A value that may be replaced at any time, such as a setting that is reloaded. Clones share it.
///
/// A reader keeps what it got: a request is answered by one set of rules, even if they change meanwhile.
#[derive(Debug)]
pub struct Live<T>(Arc<RwLock<Arc<T>>>);

impl<T> Live<T> {
    /// A value that counts until another is set.
    pub fn new(value: impl Into<Arc<T>>) -> Self {
        Self(Arc::new(RwLock::new(value.into())))
    }

    /// The value as it is now.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value.
    pub fn set(&self, value: impl Into<Arc<T>>) {
        let value = value.into();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T: Copy> Live<T> {
    /// The value as it is now, where it is small.
    pub fn copied(&self) -> T {
        **self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

// A derived one would ask for `T: Clone`.
impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Default> Default for Live<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_see_what_was_set_and_a_reader_keeps_what_it_got() {
        let live = Live::new(vec![1]);
        let (other, before) = (live.clone(), live.get());
        other.set(vec![2]);
        assert_eq!((&*live.get(), &*before), (&vec![2], &vec![1]));
        let small = Live::new(3);
        small.set(4);
        assert_eq!(small.copied(), 4);
    }
}
