//! How links and workers end.

use std::time::Duration;

use crate::room::gave_up::GiveUpReason;

/// How a link, or the try for one, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is not to be tried again.
    Over(GiveUpReason),
    /// The server does not want this worker.
    Refused(String),
    /// The server lets nobody in for a moment, whatever their secret.
    Throttled(String),
    /// The server drained, as it had said it would.
    Drained(String),
    /// The link was given up over a job that was wrong in itself: nobody is at fault.
    Spent(String),
    /// The link broke or never came about.
    Lost {
        reason: String,
        /// How long it stood after the registration.
        stood: Option<Duration>,
    },
}

/// How a link that stood ended.
#[derive(Debug)]
pub(crate) enum LinkEnd {
    /// It should be tried again.
    Again(Outcome),
    /// The worker ends; this many jobs were not finished.
    Left(usize),
}

/// How a worker ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerEnd {
    /// How many requests were not finished when the time to drain was over.
    pub cut_off: usize,
    /// Why a room was given up, if one was; the last one, if there were several.
    pub gave_up: Option<GiveUpReason>,
}
