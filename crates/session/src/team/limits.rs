//! How much teams may hold.

/// How much teams may hold. What is at a bound is refused, or makes the oldest that nobody needs go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Teams of a daemon.
    pub teams: usize,
    /// Team workers of one team, those that ended and are still remembered among them.
    pub workers: usize,
    /// Bytes of a team's name.
    pub name: usize,
    /// Messages that are kept of one team.
    pub messages: usize,
    /// Bytes of all messages that are kept of one team.
    pub inbox_bytes: usize,
    /// Bytes of all messages and results of all teams.
    pub held_bytes: usize,
    /// Bytes of one message.
    pub payload: usize,
    /// Bytes of one result.
    pub result: usize,
    /// Waits that are open or can be resumed.
    pub waits: usize,
    /// Callers that wait for one and the same wait.
    pub callers: usize,
    /// Messages of one page of an inbox.
    pub page_messages: usize,
    /// Bytes of the messages of one page. One message always fits.
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
