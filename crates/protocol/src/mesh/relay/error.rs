//! Errors as relays send them.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

use crate::mesh::lenient;

/// The kind of an error. Kinds marked "ours" exist in Warren only; stock relays have the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// No JSON.
    InvalidJson,
    /// JSON, but no message.
    InvalidMessage,
    /// A registration that lacks something.
    InvalidRegister,
    /// An unknown message.
    UnsupportedMessage,
    /// The recipient is not at this relay.
    PeerNotFound,
    /// The node sent too much in too short a time.
    RateLimited,
    /// Ours: the signature of a registration is missing or wrong.
    InvalidSignature,
    /// Ours: this relay does not take this node.
    NotAdmitted,
    /// Ours: the relay is full.
    RelayFull,
    /// Ours: a message from a node that has not registered.
    NotRegistered,
    /// Ours: a message in another's name.
    WrongSender,
    /// Ours: these two nodes have no such relay session.
    SessionNotFound,
    /// Ours: a node has the most relay sessions that it may have.
    TooManySessions,
    /// Ours: the other end of a relay session did not read for too long.
    PeerTooSlow,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 14] = [
        Self::InvalidJson,
        Self::InvalidMessage,
        Self::InvalidRegister,
        Self::UnsupportedMessage,
        Self::PeerNotFound,
        Self::RateLimited,
        Self::InvalidSignature,
        Self::NotAdmitted,
        Self::RelayFull,
        Self::NotRegistered,
        Self::WrongSender,
        Self::SessionNotFound,
        Self::TooManySessions,
        Self::PeerTooSlow,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid_json",
            Self::InvalidMessage => "invalid_message",
            Self::InvalidRegister => "invalid_register",
            Self::UnsupportedMessage => "unsupported_message",
            Self::PeerNotFound => "peer_not_found",
            Self::RateLimited => "rate_limited",
            Self::InvalidSignature => "invalid_signature",
            Self::NotAdmitted => "not_admitted",
            Self::RelayFull => "relay_full",
            Self::NotRegistered => "not_registered",
            Self::WrongSender => "wrong_sender",
            Self::SessionNotFound => "session_not_found",
            Self::TooManySessions => "too_many_sessions",
            Self::PeerTooSlow => "peer_too_slow",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error on the wire: `{"error":{…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelayError {
    /// One of [`Code`], or a code that only another relay has.
    #[serde(default, deserialize_with = "code")]
    pub code: Cow<'static, str>,
    /// For people, and for stock gateways, which parse one of them.
    #[serde(default, deserialize_with = "lenient::value")]
    pub message: String,
    /// The relay session that it concerns, if any. Stock relays never send it.
    #[serde(rename = "sessionID")]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub session_id: Option<String>,
    /// When to try again, in seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::opt")]
    pub retry_after_seconds: Option<f64>,
}

fn code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, str>, D::Error> {
    lenient::value(deserializer).map(Cow::Owned)
}

/// Stock gateways parse this exact sentence for the id.
const ABSENT: (&str, &str) = ("Peer ", " is not connected");

impl RelayError {
    /// An error of a kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code.as_str()),
            message: message.into(),
            session_id: None,
            retry_after_seconds: None,
        }
    }

    /// The node that a message was for is not here.
    pub fn peer_not_found(peer: &str) -> Self {
        Self::new(Code::PeerNotFound, format!("{}{peer}{}", ABSENT.0, ABSENT.1))
    }

    /// The same, about a relay session.
    #[must_use]
    pub fn in_session(self, session: &str) -> Self {
        Self { session_id: Some(session.to_owned()), ..self }
    }

    /// The same, with when to try again, in seconds from now.
    #[must_use]
    pub fn retry_after(self, seconds: f64) -> Self {
        Self { retry_after_seconds: Some(seconds), ..self }
    }

    /// Whether it is of this kind.
    pub fn is(&self, code: Code) -> bool {
        self.code == code.as_str()
    }

    /// The absent node, if this error reports one.
    pub fn absent_peer(&self) -> Option<&str> {
        let message = self.message.as_str();
        let peer = message.strip_prefix(ABSENT.0)?.strip_suffix(ABSENT.1)?;
        self.is(Code::PeerNotFound).then_some(peer)
    }

    /// The message's text.
    pub fn encode(&self) -> String {
        super::envelope::write("error", self)
    }
}
