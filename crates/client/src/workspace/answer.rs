//! The meaning of a reply for the caller.

use protocol::workspace::ServerMessage;

use crate::error::ClientError;

/// The meaning of a message for the caller that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<T> {
    /// The answer.
    Is(T),
    /// The request failed, in the server's words.
    No(String),
    /// Another message, which the server sent on its own.
    Other(Box<ServerMessage>),
}

impl<T> From<ServerMessage> for Answer<T> {
    fn from(message: ServerMessage) -> Self {
        Self::Other(Box::new(message))
    }
}

/// The error for a server's refusal. Most refusals are only words, so the words decide.
pub(super) fn refusal(words: String) -> ClientError {
    let is_missing = ["there is no ", "no such file "].iter().any(|it| words.starts_with(it));
    if is_missing { ClientError::NotFound { words } } else { ClientError::Declined { words } }
}

/// Whether a server's words refuse input because the session had ended before the input arrived.
pub(super) fn is_too_late(words: &str) -> bool {
    words.starts_with("the session has ended")
}

/// Whether a server's words say that it does not reach the machine of the session now.
pub(super) fn is_out_of_reach(words: &str) -> bool {
    words.contains(", which runs it, cannot be reached")
        || words.contains(", which runs it, was lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_thing_differs_from_a_forbidden_one() {
        assert!(refusal("there is no session 1".to_owned()).is_not_found());
        assert!(refusal("no such file or directory".to_owned()).is_not_found());
        assert!(!refusal("permission denied".to_owned()).is_not_found());
    }
}
