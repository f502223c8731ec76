//! Jobs of rooms, as their participants and watchers see them.

use base::{JobId, ProviderId};
use protocol::room::{Protocol, types::AnswerMetrics};

/// A job was given to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStarted {
    /// The job.
    pub job: JobId,
    /// Who has it.
    pub provider: ProviderId,
    /// The selector, as the client wrote it.
    pub model: String,
    /// Its API.
    pub protocol: Protocol,
    /// Whether it came as an `llm:request`, whose end is told by whoever reads its answer.
    pub by_message: bool,
}

/// A job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEnded {
    /// The job.
    pub job: JobId,
    /// How.
    pub how: How,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum How {
    /// With an answer, whatever its status.
    Answered(AnswerMetrics),
    /// Without one, or in the middle of one.
    Failed {
        /// Whether its answer had begun.
        begun: bool,
        /// Why.
        error: String,
    },
    /// Its client left.
    ClientGone,
}
