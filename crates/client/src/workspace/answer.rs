//! What a reply means for the caller.

use protocol::workspace::ServerMessage;

use crate::error::ClientError;

/// What a message is to the caller that waits for the answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer<T> {
    /// The answer.
    Is(T),
    /// The request was not met; in the server's words.
    No(String),
    /// Something else, which the server says of its own accord.
    Other(Box<ServerMessage>),
}

impl<T> From<ServerMessage> for Answer<T> {
    fn from(message: ServerMessage) -> Self {
        Self::Other(Box::new(message))
    }
}

/// The error that a server's words are: most of its refusals are words alone.
pub(super) fn refusal(words: String) -> ClientError {
    let is_missing = ["there is no ", "no such file "].iter().any(|it| words.starts_with(it));
    if is_missing { ClientError::NotFound { words } } else { ClientError::Declined { words } }
}

/// Whether a server's words refuse what was typed, since the session had ended before it arrived.
pub(super) fn is_too_late(words: &str) -> bool {
    words.starts_with("the session has ended")
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
