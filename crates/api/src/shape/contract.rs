//! What the APIs differ in.

use base::{Endpoint, JobId};
use http::HeaderMap;
use protocol::sse::Boundary;

use crate::error::ApiError;

pub(crate) trait Shape: Send + Sync {
    /// The shape of its requests, and with it where they are posted to.
    fn endpoint(&self) -> Endpoint;

    /// An error as a response body, JSON.
    fn error_body(&self, error: &ApiError, id: JobId) -> String;

    /// An error as the last event of a stream.
    fn error_event(&self, error: &ApiError, id: JobId) -> String;

    /// A sign of life between two events of a stream.
    fn keepalive(&self) -> &'static [u8];

    /// Whether something may be added where a stream is now.
    fn may_add(&self, at: &Boundary) -> bool {
        at.at_event_start()
    }

    /// What ends a half event.
    fn closing(&self, at: &Boundary) -> &'static [u8] {
        at.closing()
    }

    /// Where its clients look for the job's id, beside `x-request-id`.
    fn id_header(&self) -> Option<&'static str> {
        None
    }

    /// Whether its answers are streams though no request says so.
    fn always_streams(&self) -> bool {
        false
    }

    /// Whether its clients say that their body is JSON.
    fn says_json(&self) -> bool {
        true
    }

    /// Puts what its clients send in a place of their own where every API has it.
    fn adapt(&self, _headers: &mut HeaderMap) {}
}
