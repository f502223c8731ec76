//! The differences between the APIs.

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::{HeaderMap, Uri};
use protocol::sse::Boundary;
use scheduler::Head;

use crate::{error::ApiError, head};

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

    /// Words for people between two events of a stream; `None` where clients would take them for an event.
    fn comment(&self, words: &str) -> Option<String> {
        Some(format!(": {words}\n\n"))
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

    /// Whether an answer with this head is a stream to which a sign of life or an error can be added.
    fn is_stream(&self, head: &Head) -> bool {
        head::is_event_stream(head)
    }

    /// The content type of its streams.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Moves the API's own headers to where every API has them.
    fn adapt(&self, _headers: &mut HeaderMap) {}

    /// The shape of a request with this body, if it is another one with the same path.
    fn of_body(&self, _body: &[u8]) -> Option<&'static dyn Shape> {
        None
    }

    /// The body with what its API says elsewhere, or means by saying nothing, in the fields that routing reads.
    ///
    /// # Errors
    /// The client's error, when the two do not go together.
    fn complete(&self, _uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        Ok(body)
    }
}
