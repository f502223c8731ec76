//! The two ends of a job's answer.
//!
//! The provider's side writes a head, chunks and an end through an [`AnswerWriter`]; the API's
//! side reads them from an [`Answer`]. A writer never waits: it is told how much is held back for
//! the reader, and a reader tells how much it has taken, so that a connection with credit stops a
//! stream at its source. What no credit stops is bounded here.
//!
//! Dropping the [`Answer`] before the end cancels the job at its provider and frees its slot,
//! whatever state it was in. Dropping the writer before the end fails the job. The two need not be
//! on the same machine: whatever carries the writer's calls elsewhere may do so.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

use base::JobId;
use bytes::Bytes;
use dispatch::{Ending, Verdict, Waiting};
use http::{HeaderMap, StatusCode};

use crate::{
    job::{Failure, Meter, Usage},
    service::{Claim, Scheduler, now},
    translate::{AnswerMap, Untranslatable},
};

/// The most that is held back for a reader that does not read, in bytes. One more chunk may come
/// on top of it.
pub const HELD_BACK: usize = 8 * 1024 * 1024;

/// The head of an answer.
#[derive(Debug, Clone)]
pub struct Head {
    /// The backend's status.
    pub status: StatusCode,
    /// The backend's headers, without those of its connection.
    pub headers: HeaderMap,
}

/// What an [`Answer`] yields.
#[derive(Debug)]
pub enum Event {
    /// Bytes of the answer, as one read at the provider brought them.
    Chunk(Bytes),
    /// The answer is complete.
    End,
    /// There will be no (more of the) answer.
    Failed(Failure),
}

/// Why a writer need not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// The job ended otherwise, or went to another provider.
    #[error("the job is no longer this provider's")]
    Over,
    /// The reader holds back more than is kept for it.
    #[error("the client does not read")]
    Stalled,
    /// The answer is none in the shape that the provider was asked in: the job should be failed.
    #[error("the answer makes no sense")]
    Unreadable,
}

/// Told how many bytes of an answer were read, so that as many may follow.
pub trait CreditSink: Send + Sync {
    /// `bytes` more may be sent for the provider's own `number` of the job.
    fn credit(&self, number: u32, bytes: u32);
}

/// How bytes that were read are given back as credit.
struct Credit {
    sink: Arc<dyn CreditSink>,
    number: u32,
    /// Read, and not yet given back.
    owed: u32,
    /// Given back in portions of at least this, to save messages.
    portion: u32,
}

pub(crate) struct Exchange {
    state: Mutex<State>,
}

struct State {
    /// The attempt whose writer may write, if there is one.
    attempt: Option<u32>,
    /// Makes the client's answer of the provider's.
    map: Option<Box<dyn AnswerMap>>,
    head: Option<Head>,
    status: Option<StatusCode>,
    chunks: VecDeque<Piece>,
    held_back: usize,
    /// The reader has all it wants: further bytes are nobody's.
    discarding: bool,
    passed: u64,
    end: Option<Result<(), Failure>>,
    moved: Instant,
    reader: Option<Waker>,
    meter: Box<dyn Meter>,
    reported: Usage,
    credit: Option<Credit>,
}

/// Bytes for the client.
struct Piece {
    bytes: Bytes,
    /// How many bytes of the provider's they are made of, which it may send again once they are
    /// read.
    cost: usize,
}

/// Credit to be given once no lock is held.
type Due = Option<(Arc<dyn CreditSink>, u32, u32)>;

/// What an exchange knows of itself when its job ends.
pub(crate) struct Account {
    pub(crate) usage: Usage,
    pub(crate) bytes: u64,
    pub(crate) status: Option<StatusCode>,
}

impl Exchange {
    pub(crate) fn new(meter: Box<dyn Meter>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                attempt: None,
                map: None,
                head: None,
                status: None,
                chunks: VecDeque::new(),
                held_back: 0,
                discarding: false,
                passed: 0,
                end: None,
                moved: now(),
                reader: None,
                meter,
                reported: Usage::default(),
                credit: None,
            }),
        })
    }

    /// Only the writer of `attempt` may write from now on.
    pub(crate) fn begin_attempt(&self, attempt: u32, map: Option<Box<dyn AnswerMap>>) {
        let mut state = self.lock();
        state.map = map;
        state.attempt = Some(attempt);
        state.credit = None;
    }

    /// No writer may write until the next attempt begins.
    pub(crate) fn end_attempt(&self) {
        let mut state = self.lock();
        state.attempt = None;
        state.credit = None;
    }

    /// The head of this attempt's answer is here.
    pub(crate) fn begin_answer(&self, attempt: u32, head: Head) -> Result<(), Gone> {
        let mut state = self.lock();
        state.writable(attempt)?;
        let head = match &mut state.map {
            Some(map) => map.head(head),
            None => head,
        };
        state.status = Some(head.status);
        state.head = Some(head);
        state.moved = now();
        state.wake_reader();
        Ok(())
    }

    /// Ends the exchange, unless it has ended.
    pub(crate) fn finish(&self, end: Result<(), Failure>) {
        let mut state = self.lock();
        if state.end.is_none() {
            let stalled = matches!(&end, Err(failure) if failure.ending == Ending::ClientStalled);
            if stalled {
                // Whoever did not read them will not: they would be kept as long as it stays.
                state.forget_chunks();
            }
            state.end = Some(end);
            state.credit = None;
            state.wake_reader();
        }
    }

    /// When bytes last moved, and whom the exchange has been waiting for since.
    pub(crate) fn progress(&self) -> (Instant, Waiting) {
        let state = self.lock();
        let waiting = if state.chunks.is_empty() { Waiting::Provider } else { Waiting::Client };
        (state.moved, waiting)
    }

    pub(crate) fn account(&self) -> Account {
        let state = self.lock();
        let mut usage = state.meter.usage().or(state.reported);
        if state.status.is_some_and(|status| status.is_success()) {
            usage = usage.or(state.meter.estimate());
        }
        Account { usage, bytes: state.passed, status: state.status }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn forget_chunks(&mut self) {
        self.chunks = VecDeque::new();
        self.held_back = 0;
    }

    fn writable(&self, attempt: u32) -> Result<(), Gone> {
        if self.attempt == Some(attempt) && self.end.is_none() { Ok(()) } else { Err(Gone::Over) }
    }

    /// Keeps a piece for the reader. What is empty costs nothing.
    fn put(&mut self, piece: Piece) -> Due {
        if piece.bytes.is_empty() {
            return self.spent(piece.cost);
        }
        self.held_back += piece.bytes.len();
        self.passed += piece.bytes.len() as u64;
        self.chunks.push_back(piece);
        self.wake_reader();
        None
    }

    fn took(&mut self, piece: &Piece) -> Due {
        self.held_back -= piece.bytes.len();
        self.moved = now();
        self.spent(piece.cost)
    }

    /// So many bytes of the provider's are kept no longer.
    fn spent(&mut self, cost: usize) -> Due {
        let credit = self.credit.as_mut()?;
        credit.owed = credit.owed.saturating_add(u32::try_from(cost).unwrap_or(u32::MAX));
        if credit.owed < credit.portion {
            return None;
        }
        Some((Arc::clone(&credit.sink), credit.number, std::mem::take(&mut credit.owed)))
    }
}

/// The API's end: the head, then chunks, then the end.
pub struct Answer {
    exchange: Arc<Exchange>,
    scheduler: Scheduler,
    job: JobId,
    ended: bool,
}

impl Answer {
    pub(crate) fn new(exchange: Arc<Exchange>, scheduler: Scheduler, job: JobId) -> Self {
        Self { exchange, scheduler, job, ended: false }
    }

    /// The job it answers.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// Waits for the head.
    ///
    /// # Errors
    /// The [`Failure`] when the job ends without one.
    pub async fn head(&mut self) -> Result<Head, Failure> {
        poll_fn(|cx| self.poll_head(cx)).await
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        let mut state = self.exchange.lock();
        if let Some(head) = state.head.take() {
            return Poll::Ready(Ok(head));
        }
        match &state.end {
            Some(Err(failure)) => {
                self.ended = true;
                Poll::Ready(Err(failure.clone()))
            }
            // An end without a head is prevented by the writer.
            Some(Ok(())) => Poll::Ready(Err(Ending::ProviderFailed.into())),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The next event after the head.
    pub async fn next(&mut self) -> Event {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Answer::next`], for those who poll.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let mut state = self.exchange.lock();
        if let Some(piece) = state.chunks.pop_front() {
            let due = state.took(&piece);
            drop(state);
            give(due);
            return Poll::Ready(Event::Chunk(piece.bytes));
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

    /// Whether nothing is left to come but the end that is already there, or the whole rest is
    /// already here. A body that is complete can be sent in one piece.
    pub fn rest(&self) -> Option<usize> {
        let state = self.exchange.lock();
        matches!(state.end, Some(Ok(()))).then_some(state.held_back)
    }

    /// The reader has all that it wants of the answer, and will not read its end: the job is not
    /// cancelled when this is dropped, but goes on to its end. What still comes is thrown away, and
    /// does not count as progress.
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
        let over = self.exchange.lock().end.is_some();
        if !over {
            self.scheduler.client_gone(self.job);
        }
    }
}

/// The provider's end, for one attempt at a job.
pub struct AnswerWriter {
    exchange: Arc<Exchange>,
    scheduler: Scheduler,
    claim: Claim,
    status: Option<StatusCode>,
    done: bool,
}

impl AnswerWriter {
    pub(crate) fn new(exchange: Arc<Exchange>, scheduler: Scheduler, claim: Claim) -> Self {
        Self { exchange, scheduler, claim, status: None, done: false }
    }

    /// Gives bytes back to `sink` as they are read, in portions of at least `portion` bytes, under
    /// the provider's own `number` for the job.
    pub fn give_credit(&self, sink: Arc<dyn CreditSink>, number: u32, portion: u32) {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_ok() {
            state.credit = Some(Credit { sink, number, owed: 0, portion });
        }
    }

    /// Whether the head was written.
    pub fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Writes the head: from now on the job stays with this provider. A second head is ignored.
    ///
    /// # Errors
    /// [`Gone::Over`] when the job is no longer this provider's.
    pub fn head(&mut self, head: Head) -> Result<(), Gone> {
        if self.has_begun() {
            return Ok(());
        }
        let status = head.status;
        self.scheduler.begin(self.claim, head)?;
        self.status = Some(status);
        Ok(())
    }

    /// Writes bytes after the head. Returns how much is held back for the reader now, in bytes.
    ///
    /// # Errors
    /// [`Gone::Over`] when the job is no longer this provider's; [`Gone::Stalled`] when more than
    /// [`HELD_BACK`] bytes wait for a reader that does not read; [`Gone::Unreadable`] when the chunk
    /// has no form in the client's shape: in both cases the job should be failed.
    pub fn chunk(&mut self, chunk: Bytes) -> Result<usize, Gone> {
        let mut state = self.exchange.lock();
        state.writable(self.claim.attempt)?;
        if state.held_back > HELD_BACK {
            return Err(Gone::Stalled);
        }
        if chunk.is_empty() || state.discarding {
            return Ok(state.held_back);
        }
        state.meter.feed(&chunk);
        state.moved = now();
        let cost = chunk.len();
        let bytes = match &mut state.map {
            Some(map) => map.chunk(chunk).map_err(|_| Gone::Unreadable)?,
            None => chunk,
        };
        let due = state.put(Piece { bytes, cost });
        let held_back = state.held_back;
        drop(state);
        give(due);
        Ok(held_back)
    }

    /// What the provider itself says was used. What is read in the answer counts more.
    pub fn report(&self, usage: Usage) {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_ok() {
            state.reported = usage;
        }
    }

    /// The answer is complete. Without a head this is a failure.
    pub fn end(mut self) {
        let Some(status) = self.status else {
            return self.fail("the provider ended the answer before it began");
        };
        if self.end_exchange().is_err() {
            return self.fail("the answer makes no sense");
        }
        self.done = true;
        let fault = status.is_server_error();
        let verdict = if fault { Verdict::AnsweredWithFault } else { Verdict::Answered };
        self.scheduler.finished(self.claim, verdict, None);
    }

    /// There is no (more of the) answer, through a fault of the provider. Unbegun, the job may go
    /// to another.
    pub fn fail(mut self, why: &str) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Failed, Some(why.to_owned()));
    }

    /// The provider does not take the job, through no fault of its own.
    pub fn decline(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Declined, None);
    }

    /// The provider does not serve the endpoint that it was asked for. Say what it serves first,
    /// with [`Membership::endpoints`](crate::Membership::endpoints).
    pub fn unserved(mut self) {
        self.done = true;
        self.scheduler.finished(self.claim, Verdict::Unserved, None);
    }

    /// The client does not read what was sent for it: the job ends, and nobody is to blame but
    /// the client.
    pub fn stalled(mut self) {
        self.done = true;
        self.scheduler.stalled(self.claim.job);
    }

    /// Nothing is left to do: the job was cancelled, or its provider is leaving and the
    /// dispatcher is told so in one piece.
    pub fn abandon(mut self) {
        self.done = true;
    }

    fn end_exchange(&self) -> Result<(), Untranslatable> {
        let mut state = self.exchange.lock();
        if state.writable(self.claim.attempt).is_err() {
            return Ok(());
        }
        if let Some(map) = &mut state.map {
            let bytes = map.end()?;
            state.put(Piece { bytes, cost: 0 });
        }
        drop(state);
        self.exchange.finish(Ok(()));
        Ok(())
    }
}

fn give(due: Due) {
    if let Some((sink, number, bytes)) = due {
        sink.credit(number, bytes);
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
