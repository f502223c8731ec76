//! Any API in a room: the body of an error is `{"error": TEXT}` there, with the message of stock servers if
//! they have one. An error within a stream has the form of the API itself.

use std::borrow::Cow;

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::{HeaderMap, Uri};
use protocol::sse::Boundary;
use scheduler::Head;
use serde_json::json;

use super::Shape;
use crate::error::ApiError;

#[derive(Clone, Copy)]
pub(crate) struct InRoom(pub(super) &'static dyn Shape);

pub(crate) static ALL: [InRoom; super::ALL.len()] = {
    let mut all = [InRoom(super::ALL[0]); super::ALL.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = InRoom(super::ALL[at]);
        at += 1;
    }
    all
};

pub(crate) static GEMINI_ARRAY: InRoom = InRoom(&super::gemini::GeminiArray);

pub(crate) static RESPONSES: InRoom = InRoom(&super::openai::Responses);

impl Shape for InRoom {
    fn endpoint(&self) -> Endpoint {
        self.0.endpoint()
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        json!({ "error": words(error) }).to_string()
    }

    fn error_event(&self, error: &ApiError, id: JobId, number: u64) -> String {
        self.0.error_event(error, id, number)
    }

    fn keepalive(&self) -> &'static [u8] {
        self.0.keepalive()
    }

    fn waiting(&self, words: &str) -> String {
        self.0.waiting(words)
    }

    fn comment(&self, words: &str) -> Option<String> {
        self.0.comment(words)
    }

    fn may_add(&self, at: &Boundary) -> bool {
        self.0.may_add(at)
    }

    fn closing(&self, at: &Boundary) -> &'static [u8] {
        self.0.closing(at)
    }

    fn id_header(&self) -> Option<&'static str> {
        self.0.id_header()
    }

    fn always_streams(&self) -> bool {
        self.0.always_streams()
    }

    /// Stock servers of rooms read a body as JSON, whatever its content type.
    fn says_json(&self) -> bool {
        false
    }

    fn is_stream(&self, head: &Head) -> bool {
        self.0.is_stream(head)
    }

    fn stream_type(&self) -> &'static str {
        self.0.stream_type()
    }

    fn adapt(&self, headers: &mut HeaderMap) {
        self.0.adapt(headers);
    }

    fn of_body(&self, body: &[u8]) -> Option<&'static dyn Shape> {
        let endpoint = self.0.of_body(body)?.endpoint();
        let shape = ALL.iter().find(|shape| shape.endpoint() == endpoint)?;
        Some(shape)
    }

    fn complete(&self, uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        self.0.complete(uri, body)
    }
}

/// The message of stock servers, if they have one, or else the usual one.
fn words(error: &ApiError) -> Cow<'_, str> {
    let proxied = |why: &str| format!("Failed to proxy request: Error: {why}");
    match error.code {
        Some("model_not_found") => "No available participant for the requested model".into(),
        Some("endpoint_not_served") => {
            "No participant that has the requested model serves this endpoint".into()
        }
        Some("worker_lost") => proxied("Participant tunnel disconnected.").into(),
        Some("worker_failed") => {
            let why = error.message.strip_prefix("the worker failed: ");
            proxied(why.unwrap_or(&error.message)).into()
        }
        _ => Cow::Borrowed(&*error.message),
    }
}

#[cfg(test)]
mod tests {
    use dispatch::Ending;
    use scheduler::Failure;

    use super::*;

    fn body(ending: Ending, detail: Option<&str>) -> String {
        let failure = Failure { ending, detail: detail.map(str::to_owned) };
        let error = ApiError::of_failure(&failure, "*");
        ALL[0].error_body(&error, JobId::from_random(0))
    }

    #[test]
    fn errors_are_one_text_with_the_stock_words() {
        let full = Ending::QueueFull { retry_after: std::time::Duration::from_secs(1) };
        let table = [
            (full, None, "queue full"),
            (Ending::NoProvider, None, "No available participant for the requested model"),
            (
                Ending::ProviderLost,
                None,
                "Failed to proxy request: Error: Participant tunnel disconnected.",
            ),
            (
                Ending::ProviderFailed,
                Some("out of \"memory\""),
                "Failed to proxy request: Error: out of \\\"memory\\\"",
            ),
            (Ending::RequestTimeout, None, "request timeout"),
        ];
        for (ending, detail, words) in table {
            assert_eq!(body(ending, detail), format!("{{\"error\":\"{words}\"}}"));
        }
    }

    #[test]
    fn a_stream_ends_as_its_api_has_it() {
        let error = ApiError::of_failure(&Ending::ProviderLost.into(), "*");
        for (shape, plain) in ALL.iter().zip(super::super::ALL) {
            assert_eq!(shape.endpoint(), plain.endpoint());
            let id = JobId::from_random(0);
            assert_eq!(shape.error_event(&error, id, 5), plain.error_event(&error, id, 5));
        }
    }
}
