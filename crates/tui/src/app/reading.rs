//! The last answer of a server to a poll.

use client::ClientError;

/// The last answer of a server to a poll, or the reason for its absence.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Reading<T> {
    /// No answer has come yet.
    #[default]
    Unknown,
    /// The answer.
    Known(T),
    /// Only an administrator may read it.
    Private,
    /// The poll failed, for this reason.
    Failed(String),
}

impl<T> Reading<T> {
    /// Takes an answer. A server that could not be reached, or that was not asked, leaves what is
    /// known as it is.
    pub fn take(&mut self, came: Option<Result<T, ClientError>>) {
        match came {
            Some(Ok(value)) => *self = Self::Known(value),
            Some(Err(error)) if is_private(&error) => *self = Self::Private,
            Some(Err(error)) if !error.is_unreachable() => *self = Self::Failed(error.to_string()),
            Some(Err(_)) | None => {}
        }
    }

    /// The known answer.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            _ => None,
        }
    }
}

impl<T> Reading<Vec<T>> {
    /// The known elements; nothing otherwise.
    pub fn all(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

/// Whether the server refused because of the credential.
pub fn is_private(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused { status: 401 | 403, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_facts_stay_while_the_server_is_away() {
        let mut reading = Reading::default();
        reading.take(Some(Ok(vec![1])));
        let (url, reason) = ("u".to_owned(), "r".to_owned());
        reading.take(Some(Err(ClientError::Unreachable { url, reason })));
        reading.take(None);
        assert_eq!(reading.all(), [1]);
    }

    #[test]
    fn a_refusal_differs_from_a_failure() {
        let mut reading: Reading<Vec<u8>> = Reading::default();
        let refused = |status| ClientError::Refused { status, words: "no".to_owned() };
        reading.take(Some(Err(refused(401))));
        assert_eq!(reading, Reading::Private);
        reading.take(Some(Err(refused(500))));
        assert_eq!(reading, Reading::Failed("no (HTTP 500)".to_owned()));
    }
}
