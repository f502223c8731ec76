//! Joining a room as a participant.

use base::Secret;
use protocol::room::{MachineSpecs, RuntimeConfig};

/// The identity of a backend in a room. The room's password is the secret of its
/// [`crate::ServerTarget`].
#[derive(Debug, Clone)]
pub struct JoinRoom {
    /// The room's code, in either form.
    pub code: String,
    /// Its id in the room, which it chooses; the same id is the same participant again.
    pub id: String,
    /// Its nickname, for people.
    pub nickname: String,
    /// Its machine.
    pub specs: MachineSpecs,
    /// How its models generate by default.
    pub config: RuntimeConfig,
    /// The token that the server gave it when it joined before (see [`crate::Event::Joined`]).
    pub session_token: Option<Secret>,
    /// Whether it stays listed in the room, offline, when the worker ends.
    pub stay: bool,
}

impl JoinRoom {
    /// A participant that tells nothing of its machine, has no defaults, and leaves at the end.
    pub fn new(
        code: impl Into<String>,
        id: impl Into<String>,
        nickname: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            id: id.into(),
            nickname: nickname.into(),
            specs: MachineSpecs::default(),
            config: RuntimeConfig::default(),
            session_token: None,
            stay: false,
        }
    }
}
