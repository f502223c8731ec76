//! A provider's failure, in the form of the requested path's API. Workers and participants at stock
//! servers need this, because no Warren server reports the failure for them.

use crate::{
    anthropic,
    openai::{self, SequenceReader},
    relay::{FailureCode, JobFailure},
    sse::Boundary,
};

/// The body of an answer that reports the failure. `path` may have a query.
pub fn body(path: &str, request_id: &str, failure: &JobFailure) -> String {
    match Api::of_path(path) {
        Api::Messages => anthropic::error_body(kinds(failure).1, &failure.message, request_id),
        Api::Responses | Api::Other => {
            let code = Some(failure.code.as_str());
            openai::error_body(&failure.message, kinds(failure).0, None, code)
        }
    }
}

/// The state on which the last event of a stream depends, gathered while the stream passes.
#[derive(Debug, Clone, Default)]
pub struct PassedStream {
    boundary: Boundary,
    sequence: SequenceReader,
}

impl PassedStream {
    /// Takes the next bytes that pass.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.boundary.feed(bytes);
        self.sequence.feed(bytes);
    }

    /// Whether its end lies between two events.
    pub fn boundary(&self) -> &Boundary {
        &self.boundary
    }

    /// The number of the event that comes next, where events are numbered.
    pub fn next_number(&self) -> u64 {
        self.sequence.next_number()
    }
}

/// The last bytes of an event stream that has begun: the end of a half event if `so_far` stops inside one, then
/// the API's own error event.
pub fn last_event(
    path: &str,
    request_id: &str,
    failure: &JobFailure,
    so_far: &PassedStream,
) -> String {
    let closing = str::from_utf8(so_far.boundary.closing()).unwrap_or_default();
    closing.to_owned() + &event(path, request_id, failure, so_far.sequence.next_number())
}

fn event(path: &str, request_id: &str, failure: &JobFailure, number: u64) -> String {
    let (message, code) = (failure.message.as_str(), Some(failure.code.as_str()));
    match Api::of_path(path) {
        Api::Messages => anthropic::error_event(kinds(failure).1, message, request_id),
        Api::Responses => openai::response_error_event(message, kinds(failure).0, code, number),
        Api::Other => openai::error_event(message, kinds(failure).0, None, code),
    }
}

/// The APIs, each with its own form of errors.
enum Api {
    Messages,
    Responses,
    Other,
}

impl Api {
    fn of_path(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let is_below = |root: &str| {
            path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_below("/v1/messages") {
            Self::Messages
        } else if is_below("/v1/responses") {
            Self::Responses
        } else {
            Self::Other
        }
    }
}

/// The error's type in OpenAI's and in Anthropic's API.
fn kinds(failure: &JobFailure) -> (&'static str, &'static str) {
    match failure.code {
        FailureCode::BadRequest => ("invalid_request_error", "invalid_request_error"),
        FailureCode::BackendTimeout => ("timeout_error", "timeout_error"),
        _ => ("server_error", "api_error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: FailureCode) -> JobFailure {
        JobFailure { code, message: "it died".to_owned() }
    }

    fn after(stream: &str) -> PassedStream {
        let mut passed = PassedStream::default();
        passed.feed(stream.as_bytes());
        passed
    }

    #[test]
    fn each_path_has_the_error_event_of_its_own_api() {
        let broke = failure(FailureCode::BackendBroke);
        let told = |path: &str| last_event(path, "r-1", &broke, &after("data: 1\n\n"));
        let chat = "data: {\"error\":{\"message\":\"it died\",\"type\":\"server_error\",\
                    \"param\":null,\"code\":\"backend_broke\"}}\n\n";
        for path in ["/v1/chat/completions", "/v1/completions?a=/v1/messages", "/v1/messagesx"] {
            assert_eq!(told(path), chat, "{path}");
        }
        let messages = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\
                        \"message\":\"it died\"},\"request_id\":\"r-1\"}\n\n";
        assert_eq!(told("/v1/messages?beta=true"), messages);
        let responses =
            openai::response_error_event("it died", "server_error", Some("backend_broke"), 0);
        assert_eq!(told("/v1/responses"), responses);
        let begun = after("data: {\"sequence_number\":6}\n\n");
        let told = last_event("/v1/responses", "r-1", &broke, &begun);
        assert!(told.contains("\"sequence_number\":7"), "{told}");
    }

    #[test]
    fn a_half_event_is_closed_first() {
        let broke = failure(FailureCode::BackendBroke);
        for (stream, closing) in [("data: {\"a\"", "\n\n"), ("data: 1\n", "\n"), ("", "")] {
            let told = last_event("/v1/chat/completions", "r-1", &broke, &after(stream));
            assert!(told.starts_with(&format!("{closing}data: {{\"error\"")), "{told:?}");
        }
    }

    #[test]
    fn a_body_says_whose_fault_it_was() {
        let kind = |path: &str, code: FailureCode| {
            let body: serde_json::Value =
                serde_json::from_str(&body(path, "r-1", &failure(code))).unwrap();
            body["error"]["type"].as_str().unwrap().to_owned()
        };
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/messages"] {
            assert_eq!(kind(path, FailureCode::BadRequest), "invalid_request_error");
            assert_eq!(kind(path, FailureCode::BackendTimeout), "timeout_error");
        }
        assert_eq!(kind("/v1/responses", FailureCode::BackendUnreachable), "server_error");
        assert_eq!(kind("/v1/messages", FailureCode::BackendUnreachable), "api_error");
    }
}
