//! The process of a program that runs once for each turn: the part that such programs share.

use serde::{Deserialize, Serialize};

use super::{
    contract::{AgentOutput, ParsedLine, Start, TurnResult, settle_id},
    words::{self, Answer},
};
use crate::agent::{launch::Exit, usage::Usage};

/// A program's process for one turn, and the conversation that the turn belongs to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) conversation: Option<String>,
    was_resumed: bool,
    /// Whether the process has begun its work.
    pub(super) has_begun: bool,
    /// The newest error that the program reported.
    pub(super) complaint: String,
    pub(super) answer: Answer,
}

impl Run {
    pub(super) fn new(start: Start<'_>) -> Self {
        let conversation = start.conversation.map(str::to_owned);
        Self { was_resumed: conversation.is_some(), conversation, ..Self::default() }
    }

    /// Handles the program's name for its conversation.
    pub(super) fn note_id(&mut self, id: &str) -> Vec<AgentOutput> {
        settle_id(&mut self.conversation, id).into_iter().collect()
    }

    /// Handles an error that the program reports. The program may try again, so the turn goes on
    /// until the process ends.
    pub(super) fn complain(&mut self, complaint: String) -> ParsedLine {
        self.complaint = complaint;
        ParsedLine::waiting(vec![AgentOutput::notice(&self.complaint)])
    }

    /// Whether the program ended because it does not know the conversation. Only its printed text
    /// tells.
    pub(super) fn resume_was_refused(&self, tail: &str) -> bool {
        let said = format!("{}\n{tail}", self.complaint);
        // A process that has begun its work knows the conversation.
        self.was_resumed && !self.has_begun && words::says_unknown_conversation(&said)
    }

    /// Handles the end of a process that has not reported the turn's end.
    pub(super) fn exited(&self, exit: Exit, tail: &str) -> Vec<AgentOutput> {
        if self.resume_was_refused(tail) {
            return vec![AgentOutput::ResumeRefused];
        }
        match self.complaint.is_empty() {
            true => Vec::new(),
            false => vec![AgentOutput::Ended(self.failed(exit, Usage::default()))],
        }
    }

    /// The result of a turn that failed with the newest error.
    pub(super) fn failed(&self, exit: Exit, usage: Usage) -> TurnResult {
        TurnResult::failed(&format!("{} (it ended with {exit})", self.complaint), usage)
    }
}
