//! What the programs share that run once per turn.

use super::{
    contract::{AgentOutput, ParsedLine, Start, TurnResult, settle_id},
    words::{self, Answer},
};
use crate::agent::{launch::Exit, usage::Usage};

/// A program's process for one turn, and the conversation that the turn belongs to.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) conversation: Option<String>,
    was_resumed: bool,
    /// Whether anything came of this process.
    pub(super) has_begun: bool,
    /// The newest complaint.
    pub(super) complaint: String,
    pub(super) answer: Answer,
}

impl Run {
    pub(super) fn new(start: Start<'_>) -> Self {
        let conversation = start.conversation.map(str::to_owned);
        Self { was_resumed: conversation.is_some(), conversation, ..Self::default() }
    }

    /// The program names its conversation.
    pub(super) fn named(&mut self, id: &str) -> Vec<AgentOutput> {
        settle_id(&mut self.conversation, id).into_iter().collect()
    }

    /// The program reports an error. It may try again, so the turn goes on until the process ends.
    pub(super) fn complains(&mut self, complaint: String) -> ParsedLine {
        self.complaint = complaint;
        ParsedLine::waiting(vec![AgentOutput::notice(&self.complaint)])
    }

    /// Whether the program ended because it does not know the conversation; only its words say so.
    pub(super) fn resume_was_refused(&self, tail: &str) -> bool {
        let said = format!("{}\n{tail}", self.complaint);
        self.was_resumed && !self.has_begun && words::says_unknown_conversation(&said)
    }

    /// The process ended before it reported the turn's end.
    pub(super) fn exited(&self, exit: Exit, tail: &str) -> Vec<AgentOutput> {
        if self.resume_was_refused(tail) {
            return vec![AgentOutput::ResumeRefused];
        }
        match self.complaint.is_empty() {
            true => Vec::new(),
            false => vec![AgentOutput::Ended(self.failed(exit, Usage::default()))],
        }
    }

    /// The turn failed with the newest complaint.
    pub(super) fn failed(&self, exit: Exit, usage: Usage) -> TurnResult {
        TurnResult::failed(&format!("{} (it ended with {exit})", self.complaint), usage)
    }
}
