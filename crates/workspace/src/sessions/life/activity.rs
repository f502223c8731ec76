//! The activity of an agent.

/// Whether an agent is in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    Working,
    Idle,
}
