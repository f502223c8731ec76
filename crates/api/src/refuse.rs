//! Requests that never become jobs: answered, and counted by status.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use axum::response::Response;
use base::JobId;
use http::{StatusCode, request::Parts};

use crate::{error::ApiError, paths, read, shape::Shape, state::Api};

/// Refuses a request, counts it and logs it: it never becomes a job, so no other log or count has it.
pub(crate) async fn refuse(
    shape: &'static dyn Shape,
    api: &Api,
    parts: &Parts,
    body: axum::body::Body,
    error: &ApiError,
    id: JobId,
) -> Response {
    let status = error.status.as_u16();
    api.refusals().count(error.status);
    tracing::info!(target: "request", request_id = %id, path = paths::path(&parts.uri),
        outcome = "refused", status, message = %error.message);
    read::discard(&parts.headers, body).await;
    error.response(shape, id)
}

/// The counts so far. The error table's statuses bound their number.
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
