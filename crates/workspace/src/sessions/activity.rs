//! What an agent is doing.

/// Whether an agent is in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Working,
    Idle,
}
