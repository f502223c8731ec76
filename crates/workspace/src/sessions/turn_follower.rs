//! The interface by which teams follow the turns of their members.

use protocol::workspace::SessionId;

/// Follows the turns of sessions that belong to a team. Engines call it, so it must not wait.
pub trait TurnFollower: Send + Sync {
    /// A turn of a member has begun.
    fn turn_started(&self, session: SessionId, turn: u64);

    /// A turn of a member has ended: whether it succeeded, and its final text.
    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>);

    /// A member was killed, or has ended.
    fn session_gone(&self, session: SessionId);
}
