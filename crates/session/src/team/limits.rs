//! The bounds on teams.

/// The bounds on teams. At a bound, a call is refused, or the oldest item that nobody needs is
/// dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The teams of a daemon.
    pub teams: usize,
    /// The team workers of one team, including ended ones that are still listed.
    pub workers: usize,
    /// The bytes of a team's name.
    pub name: usize,
    /// The messages that are kept for one team.
    pub messages: usize,
    /// The bytes of all messages that are kept for one team.
    pub inbox_bytes: usize,
    /// The bytes of all messages and results of all teams.
    pub held_bytes: usize,
    /// The bytes of one message.
    pub payload: usize,
    /// The bytes of one result.
    pub result: usize,
    /// The waits that are open or can be resumed.
    pub waits: usize,
    /// The callers of one wait.
    pub callers: usize,
    /// The messages in one page of an inbox.
    pub page_messages: usize,
    /// The bytes of the messages in one page. One message always fits.
    pub page_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            teams: 256,
            workers: 64,
            name: 256,
            messages: 10_000,
            inbox_bytes: 32 << 20,
            held_bytes: 256 << 20,
            payload: 1 << 20,
            result: 1 << 20,
            waits: 1_024,
            callers: 16,
            page_messages: 500,
            page_bytes: 4 << 20,
        }
    }
}
