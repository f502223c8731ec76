//! The messages of the two sides of a circuit for models. Messages are JSON; the pieces of bodies are binary
//! frames between them.

use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::{
    relay::{HeaderFields, ResponseHead},
    workspace::SessionId,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use wire::Frame;

/// The longest frame of a request, in bytes: a head, or a piece of a body.
pub(super) const MAX_FRAME: usize = 1024 * 1024;

/// A member's request to one that has models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Ask {
    /// Asks whether the member has a model, and which models it has.
    Find {
        /// The model, or an alias.
        model: String,
    },
    /// Asks for a key for a session. The key lives as long as this circuit is open.
    Lend {
        /// The session.
        session: SessionId,
        /// The only model that the key is for.
        model: String,
    },
    /// A request with a session's key. Its body follows.
    Request {
        /// The session.
        session: SessionId,
        /// The path, with its query.
        path: String,
        /// The headers to pass on.
        headers: HeaderFields,
    },
    /// The body of the request is complete.
    End,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Reply {
    /// The answer to [`Ask::Find`].
    Models {
        /// Whether the member has the model.
        has: bool,
        /// The models that it has.
        models: Vec<String>,
    },
    /// The answer to [`Ask::Lend`]: the session has a key now.
    Lent,
    /// The member does not do what was asked.
    Refused {
        /// The reason, for people.
        message: String,
    },
    /// The head of the answer. Its body follows.
    Head(ResponseHead),
    /// The answer is complete.
    End,
    /// The answer broke off.
    Broken {
        /// The reason, for people.
        message: String,
    },
}

impl Reply {
    pub(super) fn refused(words: impl Into<String>) -> Self {
        Self::Refused { message: words.into() }
    }
}

/// A message as a frame.
pub(super) fn frame(message: &impl Serialize) -> Frame {
    // The messages have only text, flags, numbers and lists, which always become JSON.
    Frame::from(serde_json::to_string(message).unwrap_or_default())
}

/// The message of a frame; `None` if the frame is a piece of a body, or cannot be read.
pub(super) fn read<Message: DeserializeOwned>(frame: &Frame) -> Option<Message> {
    match frame {
        Frame::Text(text) => serde_json::from_str(text).ok(),
        Frame::Binary(_) => None,
    }
}

/// Headers for a message.
pub(super) fn fields(headers: &HeaderMap) -> HeaderFields {
    headers.iter().collect()
}

/// The headers of a message, without those whose name or value is not valid.
pub(super) fn headers(fields: &HeaderFields) -> HeaderMap {
    let header = |(name, value)| {
        Some((HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?))
    };
    fields.iter().filter_map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let session = SessionId::from_random(7);
        let given = HeaderMap::from_iter([
            (HeaderName::from_static("accept"), HeaderValue::from_static("a")),
            (HeaderName::from_static("x-b"), HeaderValue::from_bytes(b"caf\xe9").unwrap()),
        ]);
        let path = "/v1/messages?beta=true".to_owned();
        let ask = Ask::Request { session, path, headers: fields(&given) };
        let Some(Ask::Request { headers: fields, .. }) = read(&frame(&ask)) else { panic!() };
        assert_eq!(headers(&fields), given);
        let head = ResponseHead { status_code: 200, headers: HeaderFields::default() };
        for reply in [Reply::Head(head), Reply::End, Reply::refused("no")] {
            assert_eq!(read(&frame(&reply)), Some(reply));
        }
        assert_eq!(read::<Ask>(&Frame::from("{\"type\":\"new\"}".to_owned())), None);
    }

    #[test]
    fn headers_that_are_not_valid_are_left_out() {
        let bad = [("a b", "1"), ("x", "1\n2"), ("y", "3")];
        assert_eq!(headers(&bad.into_iter().collect()).len(), 1);
    }
}
