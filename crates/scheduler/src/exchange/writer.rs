//! The provider's end of an exchange.

use std::sync::Arc;

use base::JobId;
use bytes::Bytes;
use dispatch::Verdict;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    state::{Credit, Exchange, Piece, give},
    traffic::{CreditSink, HELD_BACK, Head, WriteError},
};
use crate::{claim::Claim, job::Usage, service::Scheduler, translate::Unreadable};

/// The provider's end of an exchange, for one attempt at a job.
pub struct AnswerWriter {
    exchange: Arc<Exchange>,
    scheduler: Scheduler,
    claim: Claim,
    status: Option<StatusCode>,
    /// The status that sends the job to another provider, if the answer has one.
    refused: Option<StatusCode>,
    /// Why the answer cannot be put in the client's shape, if it cannot.
    unreadable: Option<String>,
    done: bool,
}

impl AnswerWriter {
    pub(crate) fn new(exchange: Arc<Exchange>, scheduler: Scheduler, claim: Claim) -> Self {
        let (status, refused, unreadable) = (None, None, None);
        Self { exchange, scheduler, claim, status, refused, unreadable, done: false }
    }

    /// Gives credit to `sink` as bytes are read, in portions of at least `portion` bytes, under the
    /// provider's own `number` for the job.
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

    /// Writes the head. From now on the job stays with this provider, unless the status is a
    /// refusal (a 5xx or 429) and another provider can be asked. A second head is ignored.
    ///
    /// # Errors
    /// [`WriteError::Over`] when the job is no longer this provider's, [`WriteError::Refused`] when
    /// the writer should fail the job, so that another provider gets it.
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

    /// Writes bytes after the head. Returns how much is held back for the reader now, in bytes. Once the
    /// client has the whole answer, further bytes are thrown away.
    ///
    /// # Errors
    /// [`WriteError::Over`] when the job is no longer this provider's; [`WriteError::Stalled`] when
    /// more than [`HELD_BACK`] bytes wait for a reader that does not read;
    /// [`WriteError::Unreadable`] when the chunk has no form in the client's shape. In the last two
    /// cases the writer should end the job: see [`AnswerWriter::give_up`].
    pub fn chunk(&mut self, chunk: Bytes) -> Result<usize, WriteError> {
        let mut state = self.exchange.lock();
        state.writable(self.claim.attempt)?;
        if self.unreadable.is_some() {
            return Err(WriteError::Unreadable);
        }
        // A protocol without credit cannot pause its provider: the bytes ahead of the reader are
        // bounded here.
        if state.held_back > HELD_BACK {
            return Err(WriteError::Stalled);
        }
        if chunk.is_empty() || state.discarding || state.complete {
            return Ok(state.held_back);
        }
        // Credit counts the provider's bytes. A translated answer has another length.
        let cost = chunk.len();
        let (bytes, why) = match state.read(chunk) {
            Ok(bytes) => (bytes, None),
            Err(Unreadable { before, why }) => (before, Some(why)),
        };
        let due = state.put(Piece { bytes, cost });
        let complete = why.is_none() && state.completes();
        let held_back = state.held_back;
        // Unlocked first: the sink pushes into an outbox, which has its own lock, and the scheduler
        // takes the exchange's lock after its own.
        drop(state);
        give(due);
        if complete {
            self.scheduler.complete(self.claim);
        }
        self.unreadable = why;
        if self.unreadable.is_some() { Err(WriteError::Unreadable) } else { Ok(held_back) }
    }

    /// The usage that the provider reports. Counts in the answer itself take precedence.
    pub fn report(&self, usage: Usage) {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_ok() {
            let delivered = state.seams.delivered.tokens;
            state.reported = usage.after(delivered);
        }
    }

    /// Ends the answer. An answer without a head, or with an unreadable end, is a failure.
    pub fn end(mut self) {
        let Some(status) = self.status else {
            return self.fail("the provider ended the answer before it began");
        };
        if let Err(why) = self.flush() {
            return self.fail(&why);
        }
        self.done = true;
        // The reader gets the end first, since it need not wait for the scheduler's lock.
        self.exchange.finish_attempt(self.claim.attempt);
        let fault = verdict_of(status) == Some(Verdict::Failed);
        let verdict = if fault { Verdict::AnsweredWithFault } else { Verdict::Answered };
        self.scheduler.finished(self.claim, verdict, None);
    }

    /// Fails the job, or the rest of its answer, through a fault of the provider. If the answer has
    /// not begun, the job may go to another provider. If the answer was unreadable or a refusal,
    /// that reason replaces `why`.
    pub fn fail(mut self, why: &str) {
        self.done = true;
        let refused = self.refused.map(|status| format!("its backend answered {status}"));
        let why = self.unreadable.take().or(refused).unwrap_or_else(|| why.to_owned());
        let verdict = self.refused.map_or(Verdict::Failed, |status| {
            // Only when an answer is being resumed, another status can be a refusal. Then the
            // request is to blame, not the provider.
            verdict_of(status).unwrap_or(Verdict::ModelFailed)
        });
        self.scheduler.finished(self.claim, verdict, Some(why));
    }

    /// Fails the job because the provider cannot run its model now. If the answer has not begun, the job
    /// may go to another provider; this one is not blamed, since it may run other models.
    pub fn model_failed(mut self, why: &str) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::ModelFailed, Some(why.to_owned()));
    }

    /// Gives the job back because the provider's backend takes no requests now: it loads its model
    /// (`loads`), or accepts no connections. If its answer has not begun, the job goes to another
    /// provider or waits.
    pub fn unready(mut self, loads: bool) {
        self.done = true;
        let (verdict, why) = match loads {
            true => (Verdict::Loading, "its model server still loads the model"),
            false => (Verdict::Unreachable, "its model server cannot be reached"),
        };
        self.scheduler.finished(self.claim, verdict, Some(why.to_owned()));
    }

    /// Declines the job, through no fault of the provider.
    pub fn decline(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Declined, None);
    }

    /// Passes a job of a kind that the provider cannot take to another provider.
    ///
    /// # Errors
    /// Returns the writer when there is no other provider. Then the caller answers with the error
    /// itself.
    pub fn pass_on(mut self) -> Result<(), Self> {
        self.done = self.scheduler.pass_on(self.claim);
        if self.done { Ok(()) } else { Err(self) }
    }

    /// Says that the provider does not serve the endpoint. The caller must first report the
    /// endpoints that it does serve, with [`Membership::endpoints`](crate::Membership::endpoints).
    pub fn unserved(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Unserved, None);
    }

    /// Ends the job because the client does not read what was sent for it. Only the client is to
    /// blame.
    pub fn stalled(mut self) {
        self.done = true;
        self.scheduler.stalled(self.claim.job);
    }

    /// Ends a job after a write of its answer was refused with this error.
    pub fn give_up(self, error: WriteError) {
        match error {
            WriteError::Unreadable => self.fail(&error.to_string()),
            WriteError::Refused => {
                // The client does not get this status while another provider can be asked.
                let why = "its backend refused, and another is asked";
                tracing::info!(request_id = %self.job(), "{why}");
                self.fail(why);
            }
            WriteError::Stalled => self.stalled(),
            // The job was cancelled or has ended: nothing is lost.
            WriteError::Over => self.abandon(),
        }
    }

    /// Answers with an error as JSON, in the provider's place.
    pub fn answer_error(mut self, status: StatusCode, body: String) {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, body.len().into());
        match self.head(Head { status, headers }).and_then(|()| self.chunk(body.into())) {
            Ok(_) => self.end(),
            Err(error) => self.give_up(error),
        }
    }

    /// Drops the writer without a verdict: the job was cancelled, or its provider is leaving and
    /// reports all its jobs to the dispatcher at once.
    pub fn abandon(mut self) {
        self.done = true;
    }

    /// Passes on what the map and the record hold back, at the end of the answer.
    fn flush(&self) -> Result<(), String> {
        if let Some(why) = &self.unreadable {
            return Err(why.clone());
        }
        let mut state = self.exchange.lock();
        let writable = state.writable(self.claim.attempt).is_ok();
        let wanted = writable && !state.discarding && !state.complete;
        if wanted { state.end_reading() } else { Ok(()) }
    }
}

/// The verdict on a provider whose answer has this status, if the status sends the job to another
/// provider. Called before the client has seen anything of the answer. A request that went in a
/// circle is not the provider's fault: other providers may be outside the circle.
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
            // Reported later, since a provider may drop the writer while the scheduler is calling
            // it.
            self.scheduler.dropped(self.claim);
        }
    }
}
