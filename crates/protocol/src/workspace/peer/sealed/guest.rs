//! Requests of a client that another member serves. To that member the client is a guest: `request`,
//! `response`, `event`, `guest_gone`; and news for all members: `told`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::workspace::{
    bounded::{text, texts},
    ids::{SessionId, TeamId},
    limits::{NAME_MAX, REQUEST_ID_MAX, VISITED_MAX},
    role::Role,
};

/// `request`: a client's request. What is not answered is sent again over the next link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestRequest {
    /// The guest, named by the member where the client is connected; no name is used twice by one
    /// incarnation of that member.
    pub guest: u64,
    /// The request's number among the guest's, from 1. The receiver serves each number once.
    pub n: u64,
    /// The responses up to this number have arrived and need not be kept.
    pub done: u64,
    /// The client.
    #[serde(rename = "as")]
    pub caller: Caller,
    /// How long ago the client sent it, in milliseconds.
    #[serde(default)]
    pub age_ms: u64,
    /// The members that it has passed.
    #[serde(default, deserialize_with = "texts::<_, VISITED_MAX, NAME_MAX>")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub visited: Vec<String>,
    /// Where output goes that the request asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// The client's message.
    pub payload: Payload,
}

/// `response`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestResponse {
    /// The guest.
    pub guest: u64,
    /// The number of the request.
    pub n: u64,
    /// The daemon's message.
    pub payload: Payload,
}

/// `event`: a message for a guest that answers no request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestEvent {
    /// The guest.
    pub guest: u64,
    /// The daemon's message.
    pub payload: Payload,
}

/// `guest_gone`: the client has left, or its key was revoked. Waits, streams and watches end; work
/// that has begun is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfGuest {
    /// The guest.
    pub guest: u64,
}

/// `told`: a message for the clients of all members, such as `team_message`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The daemon's message.
    pub payload: Payload,
}

/// The client of a request, and its rights where it is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// For the audit log: a key's id and the like.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub who: String,
    /// What it may do.
    pub role: Role,
    /// Set for an agent of a team that connects by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<CallerMember>,
}

/// An agent of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerMember {
    /// Its team.
    pub team: TeamId,
    /// Its session.
    pub session: SessionId,
}

/// A message of a client or a daemon as JSON, which is passed on without being read.
#[derive(Clone)]
pub struct Payload(Box<RawValue>);

/// Text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON")]
pub struct NotJson;

impl Payload {
    /// A message that is JSON text.
    ///
    /// # Errors
    /// [`NotJson`].
    pub fn new(text: String) -> Result<Self, NotJson> {
        RawValue::from_string(text).map(Self).map_err(|_| NotJson)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::deserialize(deserializer).map(Self)
    }
}
