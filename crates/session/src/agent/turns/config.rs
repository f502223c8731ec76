//! Deadlines of a session, and where it left off.

use std::time::Duration;

/// Deadlines of a session, and where it left off.
#[derive(Debug, Clone)]
pub struct Config {
    /// What the ids of permission requests begin with; they are `PREFIX.TURN.NUMBER`. The
    /// session's id makes them unique, also over restarts.
    pub request_prefix: String,
    /// The number of the last turn that there was; 0 for a new session.
    pub turn: u64,
    /// A warm process that has nothing to do is stopped after this.
    pub idle_timeout: Duration,
    /// A turn in which the agent does not get on for this long has failed.
    pub silence_timeout: Duration,
    /// A request for permission that nobody answers is refused after this.
    pub permission_timeout: Duration,
    /// How long a process may take to end after each step of being told to.
    pub grace: Duration,
    /// How long a process may take to end by itself after its answer.
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
