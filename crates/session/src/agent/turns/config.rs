//! The bounds and deadlines of a session, and the number of its last turn.

use std::time::Duration;

/// The most prompts that wait for their turn.
pub const MAX_QUEUED: usize = 32;
/// The most bytes of all prompts that wait. They are bounded together, since they are stored together.
pub const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;
/// The longest prompt, in bytes.
pub const MAX_PROMPT: usize = 1024 * 1024;
/// The longest line that is read and shown as it is, in bytes. In a longer line, long texts are cut.
pub const MAX_LINE: usize = 1024 * 1024;
/// The most permission requests that wait for a decision.
pub const MAX_PENDING: usize = 64;
/// The most bytes of tool input in all waiting permission requests together.
pub(super) const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;

/// The deadlines of a session, and the number of its last turn.
#[derive(Debug, Clone)]
pub struct Config {
    /// The beginning of the ids of permission requests, which have the form `PREFIX.TURN.NUMBER`.
    /// The session's id as the prefix makes them unique, also over restarts.
    pub request_prefix: String,
    /// The number of the last turn before this start; 0 for a new session.
    pub turn: u64,
    /// A warm process without work is stopped after this time.
    pub idle_timeout: Duration,
    /// A turn in which the agent makes no progress for this time has failed.
    pub silence_timeout: Duration,
    /// A permission request that nobody answers is refused after this time.
    pub permission_timeout: Duration,
    /// How long a process may take to end after each step of closing it.
    pub grace: Duration,
    /// How long a process may take to end by itself after its answer is complete.
    pub exit_timeout: Duration,
    /// How long a turn may take to end after an interrupt.
    pub interrupt_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request_prefix: "request".to_owned(),
            turn: 0,
            idle_timeout: Duration::from_secs(15 * 60),
            silence_timeout: Duration::from_secs(10 * 60),
            permission_timeout: Duration::from_secs(10 * 60),
            grace: Duration::from_secs(5),
            exit_timeout: Duration::from_secs(10),
            interrupt_timeout: Duration::from_secs(10),
        }
    }
}
