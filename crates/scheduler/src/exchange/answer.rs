//! The API's end of an exchange.

use std::{
    future::poll_fn,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Instant,
};

use base::{JobId, ProviderId};
use dispatch::{Ending, Wait};
use tracing::Span;

use super::{
    rest::Seam,
    state::{Exchange, give},
    traffic::{Event, Head},
};
use crate::{
    job::{Failure, Usage},
    service::Scheduler,
    status::ModelLoad,
};

/// The API's end of an exchange: yields the head, then chunks, then the end.
pub struct Answer {
    exchange: Arc<Exchange>,
    scheduler: Scheduler,
    job: JobId,
    span: Span,
    ended: bool,
    /// When the last chunk was taken; before the first one, when the answer was made.
    moved: Instant,
}

impl Answer {
    pub(crate) fn new(
        exchange: Arc<Exchange>,
        scheduler: Scheduler,
        job: JobId,
        span: Span,
        now: Instant,
    ) -> Self {
        Self { exchange, scheduler, job, span, ended: false, moved: now }
    }

    /// The job that it answers.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The span of the job's log lines.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// The provider that answers; known once the head is here.
    pub fn provider(&self) -> Option<ProviderId> {
        self.exchange.lock().provider
    }

    /// Waits for the head.
    ///
    /// # Errors
    /// The [`Failure`] when the job ends without one.
    pub async fn head(&mut self) -> Result<Head, Failure> {
        poll_fn(|cx| self.poll_head(cx)).await
    }

    /// As [`Answer::head`], as a poll function.
    ///
    /// # Errors
    /// The [`Failure`] when the job ends without one.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        let mut state = self.exchange.lock();
        if let Some(head) = state.head.take() {
            return Poll::Ready(Ok(head));
        }
        match &state.end {
            Some(Err(failure)) => {
                self.ended = true;
                Poll::Ready(Err(failure.clone()))
            }
            // An end without an error comes only after a head; the writer sees to that.
            Some(Ok(())) => Poll::Ready(Err(Ending::ProviderFailed.into())),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether the reader gets nothing before the provider's answer is complete. Then only the
    /// complete answer shows whether it can be read at all, whatever the head says.
    pub fn comes_whole(&self) -> bool {
        self.exchange.lock().map.as_ref().is_some_and(|map| map.gathers())
    }

    /// Waits, after the head, until an event can be read.
    ///
    /// # Errors
    /// The [`Failure`] when the job fails with nothing after the head.
    pub async fn first_byte(&mut self) -> Result<(), Failure> {
        poll_fn(|cx| self.poll_first_byte(cx)).await
    }

    fn poll_first_byte(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let mut state = self.exchange.lock();
        match &state.end {
            _ if !state.is_read() => Poll::Ready(Ok(())),
            Some(Ok(())) => Poll::Ready(Ok(())),
            Some(Err(failure)) => {
                self.ended = true;
                Poll::Ready(Err(failure.clone()))
            }
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether another provider may resume the answer if it breaks off. Known once the head is
    /// here.
    pub fn may_be_resumed(&self) -> bool {
        self.exchange.lock().record.is_some()
    }

    /// How often another provider has resumed the answer, or its end was added here.
    pub fn seams(&self) -> u32 {
        self.exchange.lock().seams.count
    }

    /// The seam at the reader's present place, if it was not taken yet.
    pub fn take_seam(&mut self) -> Option<Seam> {
        if !self.exchange.has_seams.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.exchange.lock();
        let read = state.passed - state.held_back as u64;
        let seam = state.seams.take(read);
        if state.seams.is_read() {
            self.exchange.has_seams.store(false, Ordering::Release);
        }
        seam
    }

    /// The tokens used, as far as known.
    pub fn usage(&self) -> Usage {
        self.exchange.account().usage
    }

    /// When the last chunk was taken, by the runtime's clock.
    pub fn moved(&self) -> Instant {
        self.moved
    }

    /// The reason for which the job waits, while it is in a queue.
    pub fn wait(&self) -> Option<Wait> {
        self.scheduler.wait(self.job)
    }

    /// The load of its model that the job waits for, if its provider is loading that.
    pub fn loading(&self) -> Option<ModelLoad> {
        self.scheduler.loading(self.job)
    }

    /// The next event after the head.
    pub async fn next(&mut self) -> Event {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Answer::next`], as a poll function.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut state = self.exchange.lock();
        if let Some((bytes, due)) = state.take() {
            self.moved = state.moved;
            // Credit becomes a message on the link, so it is not given under the lock.
            drop(state);
            give(due);
            return Poll::Ready(Event::Chunk(bytes));
        }
        match &state.end {
            Some(end) => {
                self.ended = true;
                Poll::Ready(match end {
                    Ok(()) => Event::End,
                    Err(failure) => Event::Failed(failure.clone()),
                })
            }
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// How many bytes are still to be read, if the answer is complete and no seam is unread; `None`
    /// while more may come. Such a rest can be sent in one piece.
    pub fn rest(&self) -> Option<usize> {
        let state = self.exchange.lock();
        let is_known = matches!(state.end, Some(Ok(()))) && state.seams.is_read();
        is_known.then_some(state.held_back)
    }

    /// Says that the reader needs no more of the answer and will not read its end. Dropping the
    /// [`Answer`] then does not cancel the job: it runs to its end. Further bytes are thrown away
    /// and do not count as progress.
    pub fn suffices(&mut self) {
        self.ended = true;
        let mut state = self.exchange.lock();
        state.discarding = true;
        state.credit = None;
        state.forget_chunks();
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The exchange's lock must be free again before the scheduler's lock is taken: that one
        // comes first.
        let over = self.exchange.lock().end.is_some();
        if !over {
            self.scheduler.client_gone(self.job);
        }
    }
}
