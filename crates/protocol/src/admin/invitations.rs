//! Invitations of machines.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Body of `POST /admin/invitations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CreateInvitation {
    /// The name of the machine. Without one the machine names itself.
    pub name: Option<String>,
    /// How long the invitation is good for, in seconds. A day if it is not given.
    pub expires_in_secs: Option<u64>,
    /// An `https://` URL by which the server is reached from elsewhere.
    pub url: Option<String>,
}

/// Body of `POST /admin/invitations/room`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InviteToRoom {
    /// One of the room's codes.
    pub room: String,
    /// Its password, if it has one.
    pub password: Option<String>,
    /// An `https://` URL by which the server is reached from elsewhere.
    pub url: Option<String>,
}

/// Its answer: a code for any number of guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomCode {
    /// The code.
    pub code: String,
    /// Whether the room's password is in it.
    pub has_password: bool,
    /// The URLs in it, the best first.
    pub urls: Vec<String>,
}

/// An invitation, and the machine that joined by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationJson {
    /// Its id.
    pub id: String,
    /// The name of the machine: the one that was chosen, or the one that it gave itself.
    pub name: Option<String>,
    /// `open`, `joined`, `expired` or `revoked`.
    pub state: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it expires, unless it is used.
    pub expires_at: Timestamp,
    /// When a machine joined by it.
    pub joined_at: Option<Timestamp>,
    /// The id of the machine's key.
    pub key_id: Option<String>,
    /// When the machine was last connected, to the minute or so.
    pub last_seen_at: Option<Timestamp>,
    /// The code, when it has just been made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The URLs in the code, the best first, when it has just been made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
}

/// Answer of `GET /admin/invitations`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationList {
    /// Every invitation that is remembered, the oldest first.
    pub invitations: Vec<InvitationJson>,
}
