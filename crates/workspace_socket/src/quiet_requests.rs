//! The requests that this machine itself sends to a member for a client, who must not get their answers.

use std::collections::VecDeque;

use protocol::workspace::{ServerMessage, decode_reply};

use crate::request_server::NOT_ATTACHED;

/// The quiet requests to one member that it has not answered, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct QuietRequests {
    detaches: VecDeque<u64>,
    attach: Option<u64>,
}

impl QuietRequests {
    /// Notes that the request with this number is a quiet `detach`.
    pub(crate) fn detach(&mut self, number: u64) {
        self.detaches.push_back(number);
    }

    /// Notes that the request with this number is a quiet `attach`.
    pub(crate) fn attach(&mut self, number: u64) {
        self.attach = Some(number);
    }

    /// Whether a message of the member is the answer to a quiet request. A refused `attach` is not: the
    /// client has to know that its session is gone.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        if is(text, "attached") {
            return self.attach.take().is_some();
        }
        let is_answer = !self.detaches.is_empty() && (is(text, "detached") || says_detached(text));
        is_answer && self.detaches.pop_front().is_some()
    }

    /// Notes that the member has answered a request. Without this, a quiet request with another answer than
    /// the expected one would swallow an answer to the client later.
    pub(crate) fn answered(&mut self, number: u64) {
        self.detaches.retain(|detach| *detach != number);
        self.attach = self.attach.filter(|attach| *attach != number);
    }
}

/// Whether this is the answer of a member to whom the client is not attached.
fn says_detached(text: &str) -> bool {
    is(text, "error")
        && matches!(decode_reply(text), Ok(ServerMessage::Error(of)) if of.message == NOT_ATTACHED)
}

/// Whether a message is of this type. Messages of a Warren begin with their type.
pub(crate) fn is(text: &str, kind: &str) -> bool {
    let rest = text.strip_prefix(r#"{"type":""#).and_then(|rest| rest.strip_prefix(kind));
    rest.is_some_and(|rest| rest.starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DETACHED: &str = r#"{"type":"detached","session_id":"x"}"#;
    const ATTACHED: &str = r#"{"type":"attached","session_id":"x"}"#;

    #[test]
    fn the_answers_to_quiet_requests_are_taken_once() {
        let mut quiet = QuietRequests::default();
        quiet.detach(1);
        quiet.attach(2);
        assert!(quiet.take(ATTACHED) && !quiet.take(ATTACHED));
        assert!(quiet.take(DETACHED) && !quiet.take(DETACHED));
    }

    #[test]
    fn a_refusal_of_a_quiet_detach_is_taken_and_another_error_is_not() {
        let mut quiet = QuietRequests::default();
        let refused = ServerMessage::error(NOT_ATTACHED).encode();
        assert!(!quiet.take(&refused), "the client itself has asked");
        quiet.detach(1);
        assert!(!quiet.take(&ServerMessage::error("no").encode()));
        assert!(quiet.take(&refused) && !quiet.take(DETACHED));
    }

    #[test]
    fn a_quiet_request_that_is_answered_otherwise_takes_no_later_answer() {
        let mut quiet = QuietRequests::default();
        quiet.attach(1);
        quiet.detach(2);
        assert!(!quiet.take(r#"{"type":"session_unknown","session_id":"x"}"#));
        quiet.answered(1);
        quiet.answered(2);
        assert!(!quiet.take(ATTACHED) && !quiet.take(DETACHED));
    }
}
