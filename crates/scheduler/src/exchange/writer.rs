//! The provider's end.

use std::sync::Arc;

use base::JobId;
use bytes::Bytes;
use dispatch::Verdict;
use http::StatusCode;

use super::{
    state::{Credit, Exchange, Piece, give},
    traffic::{CreditSink, HELD_BACK, Head, WriteError},
};
use crate::{claim::Claim, clock::now, job::Usage, service::Scheduler, translate::Untranslatable};

/// The provider's end, for one attempt at a job.
pub struct AnswerWriter {
    exchange: Arc<Exchange>,
    scheduler: Scheduler,
    claim: Claim,
    status: Option<StatusCode>,
    /// The refusal for which another provider is asked, if there was one.
    refused: Option<StatusCode>,
    /// Why the answer has no form in the client's shape, if it has none.
    unreadable: Option<String>,
    done: bool,
}

impl AnswerWriter {
    pub(crate) fn new(exchange: Arc<Exchange>, scheduler: Scheduler, claim: Claim) -> Self {
        let (status, refused, unreadable) = (None, None, None);
        Self { exchange, scheduler, claim, status, refused, unreadable, done: false }
    }

    /// Gives bytes back to `sink` as they are read, in portions of at least `portion` bytes, under
    /// the provider's own `number` for the job.
    pub fn give_credit(&self, sink: Arc<dyn CreditSink>, number: u32, portion: u32) {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_ok() {
            state.credit = Some(Credit::new(sink, number, portion));
        }
    }

    /// The job that it answers.
    pub fn job(&self) -> JobId {
        self.claim.job
    }

    /// Whether the head was written.
    pub fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Writes the head: from now on the job stays with this provider, unless its status is a refusal
    /// (a 5xx, a 429) and another provider can be asked. A second head is ignored.
    ///
    /// # Errors
    /// [`WriteError::Over`] when the job is no longer this provider's, [`WriteError::Refused`] when it should be
    /// failed, for another.
    pub fn head(&mut self, head: Head) -> Result<(), WriteError> {
        if self.has_begun() {
            return Ok(());
        }
        let status = head.status;
        let begun = self.scheduler.begin(self.claim, head);
        match begun {
            Ok(()) => self.status = Some(status),
            Err(WriteError::Refused) => self.refused = Some(status),
            Err(_) => {}
        }
        begun
    }

    /// Writes bytes after the head. Returns how much is held back for the reader now, in bytes.
    ///
    /// # Errors
    /// [`WriteError::Over`] when the job is no longer this provider's; [`WriteError::Stalled`] when more than
    /// [`HELD_BACK`] bytes wait for a reader that does not read; [`WriteError::Unreadable`] when the chunk
    /// has no form in the client's shape: in both cases the job should be failed.
    pub fn chunk(&mut self, chunk: Bytes) -> Result<usize, WriteError> {
        let mut state = self.exchange.lock();
        state.writable(self.claim.attempt)?;
        if self.unreadable.is_some() {
            return Err(WriteError::Unreadable);
        }
        // A protocol without credit cannot be told to pause: what it sends ahead of its reader is bounded here.
        if state.held_back > HELD_BACK {
            return Err(WriteError::Stalled);
        }
        if chunk.is_empty() || state.discarding {
            return Ok(state.held_back);
        }
        state.meter.feed(&chunk);
        state.moved = now();
        // Credit counts the provider's bytes. A translated answer has another length.
        let cost = chunk.len();
        let bytes = match &mut state.map {
            Some(map) => map.chunk(chunk).map_err(|Untranslatable(why)| {
                self.unreadable = Some(why);
                WriteError::Unreadable
            })?,
            None => chunk,
        };
        let due = state.put(Piece { bytes, cost });
        let held_back = state.held_back;
        // The sink pushes into an outbox, which has a lock of its own.
        drop(state);
        give(due);
        Ok(held_back)
    }

    /// The usage that the provider reports. Counts in the answer itself take precedence.
    pub fn report(&self, usage: Usage) {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_ok() {
            state.reported = usage;
        }
    }

    /// The answer is complete. Without a head, or with an end that makes no sense, this is a
    /// failure.
    pub fn end(mut self) {
        let Some(status) = self.status else {
            return self.fail("the provider ended the answer before it began");
        };
        if let Err(Untranslatable(why)) = self.flush() {
            return self.fail(&why);
        }
        self.done = true;
        // The reader first: it need not wait for the scheduler's lock.
        self.exchange.finish_attempt(self.claim.attempt);
        let fault = verdict_of(status) == Some(Verdict::Failed);
        let verdict = if fault { Verdict::AnsweredWithFault } else { Verdict::Answered };
        self.scheduler.finished(self.claim, verdict, None);
    }

    /// There is no (more of the) answer, through a fault of the provider. If the answer has not begun,
    /// the job may go to another. If the answer could not be read, or was a refusal, that reason
    /// replaces `why`.
    pub fn fail(mut self, why: &str) {
        self.done = true;
        let refused = self.refused.map(|status| format!("its backend answered {status}"));
        let why = self.unreadable.take().or(refused).unwrap_or_else(|| why.to_owned());
        let verdict = self.refused.and_then(verdict_of).unwrap_or(Verdict::Failed);
        self.scheduler.finished(self.claim, verdict, Some(why));
    }

    /// The provider does not take the job, through no fault of its own.
    pub fn decline(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Declined, None);
    }

    /// The provider cannot take a job of this kind: another one is asked.
    ///
    /// # Errors
    /// The writer, when there is no other provider: this one then answers with the error itself.
    pub fn pass_on(mut self) -> Result<(), Self> {
        self.done = self.scheduler.pass_on(self.claim);
        if self.done { Ok(()) } else { Err(self) }
    }

    /// The provider does not serve the endpoint that it was asked for. Say what it serves first,
    /// with [`Membership::endpoints`](crate::Membership::endpoints).
    pub fn unserved(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Unserved, None);
    }

    /// The client does not read what was sent for it: the job ends, and only
    /// the client is to blame.
    pub fn stalled(mut self) {
        self.done = true;
        self.scheduler.stalled(self.claim.job);
    }

    /// Nothing is left to do: the job was cancelled, or its provider is leaving and the
    /// dispatcher is told so in one piece.
    pub fn abandon(mut self) {
        self.done = true;
    }

    /// Writes the rest of a mapped answer.
    fn flush(&self) -> Result<(), Untranslatable> {
        if let Some(why) = &self.unreadable {
            return Err(Untranslatable(why.clone()));
        }
        let mut state = self.exchange.lock();
        let writable = state.writable(self.claim.attempt).is_ok() && !state.discarding;
        if let Some(map) = state.map.as_mut().filter(|_| writable) {
            let bytes = map.end()?;
            state.put(Piece { bytes, cost: 0 });
        }
        Ok(())
    }
}

/// What an answer with this status says about its provider, if it is a refusal after which another
/// provider is asked. The client has seen nothing of the answer. A request that went in a circle is
/// nobody's fault: other providers may be outside the circle.
pub(crate) fn verdict_of(status: StatusCode) -> Option<Verdict> {
    match status {
        StatusCode::LOOP_DETECTED => Some(Verdict::Declined),
        StatusCode::TOO_MANY_REQUESTS => Some(Verdict::Overloaded),
        status if status.is_server_error() => Some(Verdict::Failed),
        _ => None,
    }
}

impl Drop for AnswerWriter {
    fn drop(&mut self) {
        if !self.done {
            // Later, not now: a provider may drop it while the scheduler is calling it.
            self.scheduler.dropped(self.claim);
        }
    }
}
