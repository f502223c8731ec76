//! The differences between the APIs.

use base::{Endpoint, JobId};
use http::HeaderMap;
use protocol::sse::Boundary;

use crate::error::ApiError;

pub(crate) trait Shape: Send + Sync {
    /// Its endpoint: the path and the shape of its requests.
    fn endpoint(&self) -> Endpoint;

    /// An error as a response body, JSON.
    fn error_body(&self, error: &ApiError, id: JobId) -> String;

    /// An error as the last event of a stream, of this number where events are numbered.
    fn error_event(&self, error: &ApiError, id: JobId, number: u64) -> String;

    /// A sign of life between two events of a stream.
    fn keepalive(&self) -> &'static [u8];

    /// A sign of life before the first event, with words about what the request waits for.
    fn waiting(&self, words: &str) -> String {
        format!(": {words}\n\n")
    }

    /// Whether an event may be added at this point of a stream.
    fn may_add(&self, at: &Boundary) -> bool {
        at.at_event_start()
    }

    /// The bytes that end an incomplete event.
    fn closing(&self, at: &Boundary) -> &'static [u8] {
        at.closing()
    }

    /// Its own header for the job's id, beside `x-request-id`.
    fn id_header(&self) -> Option<&'static str> {
        None
    }

    /// Whether its answers are always streams.
    fn always_streams(&self) -> bool {
        false
    }

    /// Whether its clients declare the body as JSON.
    fn says_json(&self) -> bool {
        true
    }

    /// Moves the API's own headers to where every API has them.
    fn adapt(&self, _headers: &mut HeaderMap) {}
}
