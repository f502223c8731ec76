//! Errors for a peer whose request gets no answer.

use protocol::{
    json::clip,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ErrorCode, InferenceError},
    },
    openai::error_body,
    via::Loop,
};
use scheduler::{Ending, Failure};

use crate::{link::Link, share::Refusal};

/// The longest text for people, in bytes.
const MAX_WORDS: usize = 4_096;

impl Refusal {
    /// The request itself is at fault.
    pub(super) fn bad_request(status: u16, words: &str, param: Option<&str>) -> Self {
        let body = error_body(words, "invalid_request_error", param, None);
        let backend_answer = Some((status, body));
        Self { code: ErrorCode::InternalError, words: words.to_owned(), backend_answer }
    }

    /// The request has been here before, or has passed too many servers.
    pub(super) fn looped(looped: Loop) -> Self {
        let body = error_body(&looped.to_string(), "server_error", None, Some("loop_detected"));
        let backend_answer = Some((http::StatusCode::LOOP_DETECTED.as_u16(), body));
        Self { code: ErrorCode::InternalError, words: looped.to_string(), backend_answer }
    }

    /// The backend answered with an error. The words are those of stock peers.
    pub(super) fn by_backend(status: http::StatusCode, body: String) -> Self {
        let words = format!("backend returned {status}: {}", clip(&body, MAX_WORDS));
        let code = match status.as_u16() {
            408 | 504 => ErrorCode::Timeout,
            429 => ErrorCode::QueueFull,
            503 => ErrorCode::Unavailable,
            _ => ErrorCode::InternalError,
        };
        Self { code, words, backend_answer: Some((status.as_u16(), body)) }
    }

    /// The job got no answer in this server.
    pub(super) fn by_server(failure: &Failure, model: &str) -> Self {
        let detail = || failure.detail.as_deref().unwrap_or("it gave no reason").to_owned();
        let (code, words) = match &failure.ending {
            Ending::QueueFull { .. } => (ErrorCode::QueueFull, "the queue is full".to_owned()),
            // Only a fellow's job ends as not lent.
            Ending::NoProvider | Ending::NotServed | Ending::NotLent => {
                let words = format!("model '{}' not loaded on this node", clip(model, 256));
                (ErrorCode::ModelNotLoaded, words)
            }
            Ending::QueueTimeout | Ending::BusyTimeout { .. } => {
                (ErrorCode::Timeout, "no backend was free within the time-out".to_owned())
            }
            Ending::RequestTimeout | Ending::IdleTimeout => {
                (ErrorCode::Timeout, "the backend did not answer in time".to_owned())
            }
            Ending::ShuttingDown => (ErrorCode::Unavailable, "node is shutting down".to_owned()),
            Ending::RequeueExhausted => {
                (ErrorCode::Unavailable, "every backend that was tried was lost".to_owned())
            }
            Ending::Revoked | Ending::SignedOut | Ending::Closed | Ending::ClientStalled => {
                (ErrorCode::Cancelled, "the request was stopped".to_owned())
            }
            Ending::TooLarge { limit } => {
                let words = format!("the request is too large: up to {limit} bytes are taken");
                return Self::bad_request(413, &words, None);
            }
            Ending::ProviderLost => {
                let words = "the backend was lost while it answered".to_owned();
                (ErrorCode::InternalError, words)
            }
            Ending::ProviderFailed | Ending::Untranslatable => {
                (ErrorCode::InternalError, format!("the backend failed: {}", detail()))
            }
        };
        Self::new(code, words)
    }

    /// Sends the refusal to a peer that has got no part of an answer yet.
    pub(super) fn tell(self, link: &Link, request_id: WireId) {
        // If the link is closed, there is no peer to tell.
        let _ = link.tell(&self.message(link, request_id));
    }

    /// Sends the refusal in the lane of answers, so that it does not overtake parts of the answer.
    pub(super) async fn say(self, link: &Link, request_id: WireId) {
        let _ = link.say(&self.message(link, request_id)).await;
    }

    fn message(self, link: &Link, request_id: WireId) -> ClusterMessage {
        let Self { code, words, backend_answer } = self;
        tracing::debug!(peer = %link.peer.short(), %request_id, code = code.as_str(), words,
            "a request of a peer was not answered");
        let (status, body) = backend_answer.filter(|_| link.warren).unzip();
        ClusterMessage::InferenceError(InferenceError {
            request_id,
            error_message: words,
            code: Some(code),
            status: status.map(u32::from),
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;

    fn code(ending: Ending) -> ErrorCode {
        Refusal::by_server(&ending.into(), "m").code
    }

    #[test]
    fn every_ending_has_a_code_that_stock_peers_know() {
        let after = Duration::from_secs(1);
        let table = [
            (Ending::QueueFull { retry_after: after }, ErrorCode::QueueFull),
            (Ending::NoProvider, ErrorCode::ModelNotLoaded),
            (Ending::NotServed, ErrorCode::ModelNotLoaded),
            (Ending::QueueTimeout, ErrorCode::Timeout),
            (Ending::RequestTimeout, ErrorCode::Timeout),
            (Ending::IdleTimeout, ErrorCode::Timeout),
            (Ending::ShuttingDown, ErrorCode::Unavailable),
            (Ending::RequeueExhausted, ErrorCode::Unavailable),
            (Ending::Revoked, ErrorCode::Cancelled),
            (Ending::SignedOut, ErrorCode::Cancelled),
            (Ending::ClientStalled, ErrorCode::Cancelled),
            (Ending::ProviderLost, ErrorCode::InternalError),
            (Ending::ProviderFailed, ErrorCode::InternalError),
        ];
        for (ending, expected) in table {
            assert_eq!(code(ending.clone()), expected, "{ending:?}");
        }
        let too_large = Refusal::by_server(&Ending::TooLarge { limit: 9 }.into(), "m");
        assert_eq!(too_large.backend_answer.unwrap().0, 413);
    }

    #[test]
    fn a_backends_error_is_sent_in_stock_words() {
        let body = r#"{"error": "boom"}"#.to_owned();
        let refusal = Refusal::by_backend(StatusCode::INTERNAL_SERVER_ERROR, body.clone());
        let words = r#"backend returned 500 Internal Server Error: {"error": "boom"}"#;
        assert_eq!((refusal.code, refusal.words.as_str()), (ErrorCode::InternalError, words));
        assert_eq!(refusal.backend_answer, Some((500, body)));
        let of = |status| Refusal::by_backend(status, String::new()).code;
        assert_eq!(of(StatusCode::TOO_MANY_REQUESTS), ErrorCode::QueueFull);
        assert_eq!(of(StatusCode::BAD_REQUEST), ErrorCode::InternalError);
    }
}
