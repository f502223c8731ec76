//! One job at a peer.

use std::sync::Arc;

use base::JobId;
use http::StatusCode;
use protocol::mesh::cluster::{InferenceChunk, InferenceComplete, InferenceError};
use scheduler::{AnswerWriter, Usage, WriteError};

use super::{fate::Fate, reply::Reply};
use crate::link::Link;

/// A job at a peer, or on its way there.
pub(super) struct PeerJob {
    pub(super) job: JobId,
    writer: AnswerWriter,
    reply: Reply,
    /// The link over which the request went; `None` until it was sent.
    pub(super) link: Option<Arc<Link>>,
}

/// Why a job ends although its peer has not ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The answer is no longer accepted.
    Gone(WriteError),
    /// The answer makes no sense.
    Bad(String),
}

impl From<WriteError> for Trouble {
    fn from(gone: WriteError) -> Self {
        Self::Gone(gone)
    }
}

impl PeerJob {
    pub(super) fn new(job: JobId, writer: AnswerWriter, streaming: bool) -> Self {
        Self { job, writer, reply: Reply::new(streaming), link: None }
    }

    /// Whether its request went over this link.
    pub(super) fn is_on(&self, link: &Link) -> bool {
        self.link.as_ref().is_some_and(|own| own.number == link.number)
    }

    /// Passes on a part of the answer.
    pub(super) fn chunk(&mut self, chunk: &InferenceChunk) -> Result<(), Trouble> {
        let bytes = self.reply.chunk(chunk.chunk.get()).map_err(Trouble::Bad)?;
        if !bytes.is_empty() {
            self.begin()?;
            self.writer.chunk(bytes)?;
        }
        Ok(())
    }

    /// Handles the peer's message that the answer is complete. A stock node says so even if its
    /// backend has died.
    pub(super) fn complete(mut self, complete: &InferenceComplete, warren: bool) {
        // Stock peers report the number of chunks instead of tokens.
        let estimated = !warren;
        self.writer.report(Usage {
            estimated,
            prompt_tokens: complete.tokens_in.map(u64::from),
            completion_tokens: complete.tokens_out.map(u64::from),
            ..Usage::default()
        });
        if !warren && !self.reply.is_finished() {
            return self.fail("the answer of the peer has no finish_reason: its backend died");
        }
        match self.rest() {
            Ok(()) => self.writer.end(),
            Err(trouble) => self.give_up(trouble),
        }
    }

    /// Handles the peer's message that there is no answer, or no more of it.
    pub(super) fn error(self, error: &InferenceError) {
        match Fate::of(error, self.writer.has_begun()) {
            Fate::Fails(why) => self.fail(&why),
            Fate::Answered(status, body) => self.writer.answer_error(status, body),
            Fate::PassedOn(status, body) => self.pass_on(status, body),
        }
    }

    /// Fails the job by the peer's fault: there is no answer, or no more of it.
    pub(super) fn fail(self, why: &str) {
        tracing::warn!(request_id = %self.job, why, "a peer failed a job");
        self.writer.fail(why);
    }

    /// Passes the job on, since the peer cannot serve it: it goes to another provider, or the
    /// client gets this error.
    pub(super) fn pass_on(self, status: StatusCode, body: String) {
        let job = self.job;
        match self.writer.pass_on() {
            Ok(()) => {
                tracing::debug!(request_id = %job, "a job of a peer went to another provider");
            }
            Err(writer) => writer.answer_error(status, body),
        }
    }

    /// Ends the job for a reason other than a message of its peer.
    pub(super) fn give_up(self, trouble: Trouble) {
        match trouble {
            Trouble::Bad(why) => self.fail(&why),
            Trouble::Gone(error) => self.writer.give_up(error),
        }
    }

    /// Drops the job without a verdict: it was cancelled, or the peer leaves the scheduler.
    pub(super) fn abandon(self) {
        self.writer.abandon();
    }

    /// Gives the job back, since the peer does not serve this endpoint.
    pub(super) fn unserved(self) {
        self.writer.unserved();
    }

    fn rest(&mut self) -> Result<(), Trouble> {
        let rest = self.reply.end().map_err(Trouble::Bad)?;
        self.begin()?;
        self.writer.chunk(rest)?;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Trouble> {
        if !self.writer.has_begun() {
            self.writer.head(self.reply.head())?;
        }
        Ok(())
    }
}
