//! Requests that were refused before they became jobs, counted by status.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use http::StatusCode;

/// The count for each status. The error table has few statuses, which bounds the map.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<u16, u64>>);

impl Refusals {
    pub(crate) fn count(&self, status: StatusCode) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(status.as_u16()).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> Vec<(u16, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(status, count)| (*status, *count)).collect()
    }
}
