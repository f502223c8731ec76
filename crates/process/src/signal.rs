//! Signals for sessions, and the ways in which processes end.

use serde::{Deserialize, Serialize};

/// A signal for a session's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Signal {
    /// The terminal is gone (SIGHUP).
    Hangup,
    /// Ctrl-C was typed (SIGINT).
    Interrupt,
    /// Ctrl-\ was typed (SIGQUIT).
    Quit,
    /// A request to end (SIGTERM).
    Terminate,
    /// The end at once (SIGKILL).
    Kill,
    /// For the program's own use.
    User1,
    /// For the program's own use.
    User2,
    /// Continue after a stop (SIGCONT).
    Continue,
    /// Stop until continued (SIGSTOP).
    Stop,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Exit {
    /// The process ended by itself, with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
    /// The supervisor was lost, so the exit is not known. The process is dead.
    Lost,
}
