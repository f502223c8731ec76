//! Notices for the operator, in the log and for clients.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use replica::Notice;

/// The most notices that are kept.
const KEPT: usize = 64;

/// The latest notices.
#[derive(Clone, Default)]
pub(crate) struct Notices(Arc<Mutex<VecDeque<String>>>);

impl Notices {
    pub(crate) fn tell(&self, notice: &Notice) {
        let text = notice.to_string();
        match notice.is_error() {
            true => tracing::error!(notice = text, "a fault in the cluster"),
            false => tracing::warn!(notice = text, "the cluster"),
        }
        self.keep(text);
    }

    pub(crate) fn keep(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|earlier| *earlier != text);
        kept.push_back(text);
        while kept.len() > KEPT {
            kept.pop_front();
        }
    }

    /// The notices, the oldest first.
    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
