//! The state that both ends of an exchange share.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    task::Waker,
    time::Instant,
};

use base::ProviderId;
use bytes::{Bytes, BytesMut};
use dispatch::{BlockedOn, Ending};
use http::StatusCode;

use super::{
    rest::Seams,
    traffic::{CreditSink, ESTIMATED, Head, USAGE_HEADER, WriteError},
};
use crate::{
    claim::Claim,
    clock::now,
    job::{Failure, Meter, Usage},
    resume::Record,
    translate::AnswerMap,
};

/// Chunks up to this size, in bytes, are gathered when the reader is behind. Kept separately they
/// would take more memory than their bytes.
const SMALL: usize = 2 * 1024;

/// The most bytes that are gathered into one piece. One more chunk may come on top.
const GATHERED: usize = 16 * 1024;

/// The number of pieces for which room stays allocated once all are read. It is small because the
/// stream may then be quiet for a long time.
const ROOM: usize = 16;

/// The most bytes whose cost waits for the next piece. It is far less than the credit of any job,
/// and as much as an event that is held back may have.
const MAX_UNPAID: usize = 64 * 1024;

/// Returns the bytes that were read as credit.
pub(super) struct Credit {
    sink: Arc<dyn CreditSink>,
    number: u32,
    /// Bytes read, but not returned yet.
    owed: u32,
    /// Bytes for which the map has not yielded anything yet. They are added to the cost of its next
    /// piece. Otherwise an event that the map holds back until its end would cost only its last
    /// chunk.
    held: usize,
    /// The smallest portion that is returned, in bytes; it keeps the number of messages small.
    portion: u32,
}

pub(crate) struct Exchange {
    state: Mutex<ExchangeState>,
    /// Whether there may be a seam that the reader has not taken. Kept outside the lock, since each
    /// read asks and almost no answer has a seam.
    pub(super) has_seams: AtomicBool,
}

pub(super) struct ExchangeState {
    /// The attempt whose writer may write, if there is one.
    pub(super) attempt: Option<u32>,
    /// Converts the provider's answer into the client's.
    pub(super) map: Option<Box<dyn AnswerMap>>,
    /// Records the provider's answer before it is converted, if another provider may resume it.
    pub(super) record: Option<Box<dyn Record>>,
    /// Where other providers have resumed the answer.
    pub(super) seams: Seams,
    pub(super) head: Option<Head>,
    /// The provider that wrote the head.
    pub(super) provider: Option<ProviderId>,
    pub(super) status: Option<StatusCode>,
    chunks: VecDeque<Piece>,
    /// The most recent small chunks.
    gathered: SmallChunks,
    pub(super) held_back: usize,
    /// The reader needs no more: further bytes are thrown away.
    pub(super) discarding: bool,
    /// The reader has the whole answer, or will: `end` is set, though the writer has not ended yet.
    pub(super) complete: bool,
    pub(super) passed: u64,
    pub(super) end: Option<Result<(), Failure>>,
    pub(super) moved: Instant,
    /// When the first chunk with text of the model came.
    first_text: Option<Instant>,
    pub(super) reader: Option<Waker>,
    pub(super) meter: Box<dyn Meter>,
    pub(super) reported: Usage,
    /// Whether the provider only estimates its usage.
    pub(super) estimated: bool,
    pub(super) credit: Option<Credit>,
}

/// Bytes for the client.
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// How many of the provider's bytes it was made of. The provider gets them back as credit once
    /// the piece is read.
    pub(super) cost: usize,
}

/// Small chunks that become one piece.
#[derive(Default)]
struct SmallChunks {
    bytes: BytesMut,
    cost: usize,
}

/// Credit to give after the lock is released.
pub(super) type Due = Option<(Arc<dyn CreditSink>, u32, u32)>;

/// The figures of an exchange when its job ends.
pub(crate) struct Account {
    pub(crate) usage: Usage,
    /// How many of these tokens came before the last provider resumed the answer.
    pub(crate) delivered: u64,
    pub(crate) bytes: u64,
    pub(crate) status: Option<StatusCode>,
    /// When the first text of the model came.
    pub(crate) first_text: Option<Instant>,
}

impl Exchange {
    pub(crate) fn new(meter: Box<dyn Meter>, now: Instant) -> Arc<Self> {
        Arc::new(Self {
            has_seams: AtomicBool::new(false),
            state: Mutex::new(ExchangeState {
                attempt: None,
                map: None,
                record: None,
                seams: Seams::default(),
                head: None,
                provider: None,
                status: None,
                chunks: VecDeque::new(),
                gathered: SmallChunks::default(),
                held_back: 0,
                discarding: false,
                complete: false,
                passed: 0,
                end: None,
                moved: now,
                first_text: None,
                reader: None,
                meter,
                reported: Usage::default(),
                estimated: false,
                credit: None,
            }),
        })
    }

    /// From now on only the writer of `attempt` may write.
    pub(crate) fn begin_attempt(&self, attempt: u32, map: Option<Box<dyn AnswerMap>>) {
        let mut state = self.lock();
        // An earlier attempt's credit and usage must not leak into this one.
        state.map = map;
        state.attempt = Some(attempt);
        state.credit = None;
        state.reported = Usage::default();
    }

    /// No writer may write until the next attempt begins.
    pub(crate) fn end_attempt(&self) {
        let mut state = self.lock();
        state.attempt = None;
        state.credit = None;
    }

    /// Takes in the head of this claim's answer.
    pub(crate) fn begin_answer(
        &self,
        claim: Claim,
        head: Head,
        now: Instant,
        record: Option<Box<dyn Record>>,
    ) -> Result<(), WriteError> {
        let mut state = self.lock();
        // An attempt that was requeued may still send a head. It must reach no reader.
        state.writable(claim.attempt)?;
        state.provider = Some(claim.provider);
        state.estimated = is_estimated(&head);
        state.record = record;
        let head = match &mut state.map {
            Some(map) => map.head(head),
            None => head,
        };
        state.status = Some(head.status);
        state.head = Some(head);
        state.moved = now;
        state.wake_reader();
        Ok(())
    }

    /// Marks the answer as complete, if this attempt may still write.
    pub(super) fn finish_attempt(&self, attempt: u32) {
        let writable = self.lock().writable(attempt).is_ok();
        if writable {
            self.finish(Ok(()));
        }
    }

    /// Ends the exchange, unless it has already ended.
    pub(crate) fn finish(&self, end: Result<(), Failure>) {
        let mut state = self.lock();
        if state.end.is_none() {
            // Half an event is closed first, so that the client can read the error that follows.
            if end.is_err() {
                state.break_off();
            }
            let stalled = matches!(&end, Err(failure) if failure.ending == Ending::ClientStalled);
            if stalled {
                // A stalled client will not read the chunks, and they would be kept as long as it
                // stays connected.
                state.forget_chunks();
            }
            state.end = Some(end);
            state.credit = None;
            state.wake_reader();
        }
    }

    /// When bytes last moved, and which side has blocked the exchange since then.
    pub(crate) fn progress(&self) -> (Instant, BlockedOn) {
        let state = self.lock();
        let waiting = if state.is_read() { BlockedOn::Provider } else { BlockedOn::Client };
        (state.moved, waiting)
    }

    /// Whether the reader has the whole answer, or will, and the writer has not ended yet.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().complete
    }

    pub(crate) fn account(&self) -> Account {
        let state = self.lock();
        Account {
            usage: state.usage(),
            delivered: state.seams.delivered.tokens,
            bytes: state.passed,
            status: state.status,
            first_text: state.first_text,
        }
    }

    /// Tokens of the answer so far, as far as known.
    pub(crate) fn tokens(&self) -> Option<u64> {
        self.lock().usage().completion_tokens
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ExchangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives credit. Must not be called while holding an exchange's lock.
pub(super) fn give(due: Due) {
    if let Some((sink, number, bytes)) = due {
        sink.credit(number, bytes);
    }
}

pub(super) fn is_estimated(head: &Head) -> bool {
    head.headers.get(USAGE_HEADER).is_some_and(|kind| kind == ESTIMATED)
}

impl Credit {
    pub(super) fn new(sink: Arc<dyn CreditSink>, number: u32, portion: u32) -> Self {
        Self { sink, number, owed: 0, held: 0, portion }
    }
}

impl ExchangeState {
    /// The usage from the answer itself, or else from the provider's report, or else, for an answer
    /// with a good status, from the meter's estimate.
    fn usage(&self) -> Usage {
        let mut usage = self.meter.usage().or(self.reported);
        usage.estimated |= self.estimated;
        if self.status.is_some_and(|status| status.is_success()) && !usage.is_whole() {
            return usage.or(Usage { estimated: true, ..self.meter.estimate() });
        }
        usage
    }

    /// Counts a chunk of the provider.
    pub(super) fn count(&mut self, chunk: &[u8]) {
        self.meter.feed(chunk);
        self.moved = now();
        if self.first_text.is_none() && self.meter.has_text() {
            self.first_text = Some(self.moved);
        }
    }

    pub(super) fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    pub(super) fn forget_chunks(&mut self) {
        self.chunks = VecDeque::new();
        self.gathered = SmallChunks::default();
        self.held_back = 0;
    }

    /// Forgets the costs of all waiting pieces: they were paid for, or their provider is gone.
    pub(super) fn forget_costs(&mut self) {
        self.chunks.iter_mut().for_each(|piece| piece.cost = 0);
        self.gathered.cost = 0;
    }

    /// After a chunk: ends the answer for the reader, if the reader has all of it now. Returns
    /// whether that is so.
    pub(super) fn completes(&mut self) -> bool {
        if !self.map.as_ref().is_some_and(|map| map.is_complete()) {
            return false;
        }
        self.complete = true;
        self.end = Some(Ok(()));
        self.credit = None;
        self.wake_reader();
        true
    }

    /// Passes on what was held back of an answer that breaks off.
    fn break_off(&mut self) {
        let held = self.map.as_mut().filter(|_| self.status.is_some()).map(|map| map.broken_off());
        self.put(Piece { bytes: held.unwrap_or_default(), cost: 0 });
    }

    pub(super) fn writable(&self, attempt: u32) -> Result<(), WriteError> {
        // The writer of an answer that is complete for the client may still write until its own
        // end.
        if self.attempt == Some(attempt) && (self.end.is_none() || self.complete) {
            Ok(())
        } else {
            Err(WriteError::Over)
        }
    }

    /// Queues a piece for the reader. An empty piece is not queued. While its cost is small, that
    /// is added to the cost of the next piece. Once it is large it is returned as credit: then the
    /// map drops what it reads, or gathers it.
    pub(super) fn put(&mut self, mut piece: Piece) -> Due {
        if let Some(credit) = &mut self.credit {
            piece.cost += std::mem::take(&mut credit.held);
            if piece.bytes.is_empty() && piece.cost <= MAX_UNPAID {
                credit.held = piece.cost;
                return None;
            }
        }
        if piece.bytes.is_empty() {
            return self.spent(piece.cost);
        }
        self.held_back += piece.bytes.len();
        self.passed += piece.bytes.len() as u64;
        self.queue(piece);
        self.wake_reader();
        None
    }

    /// Whether the reader has taken everything that arrived.
    pub(super) fn is_read(&self) -> bool {
        self.chunks.is_empty() && self.gathered.bytes.is_empty()
    }

    /// The next piece, taken by the reader.
    pub(super) fn take(&mut self) -> Option<(Bytes, Due)> {
        if self.chunks.is_empty() {
            self.end_gathering();
        }
        let piece = self.chunks.pop_front()?;
        // Otherwise a queue that grew once would keep its memory as long as the stream lives.
        if self.chunks.is_empty() && self.chunks.capacity() > ROOM {
            self.chunks = VecDeque::new();
        }
        self.held_back -= piece.bytes.len();
        self.moved = now();
        Some((piece.bytes, self.spent(piece.cost)))
    }

    fn queue(&mut self, piece: Piece) {
        // A reader that keeps up gets each piece as it arrived, without a copy.
        if self.is_read() || piece.bytes.len() > SMALL {
            self.end_gathering();
            self.chunks.push_back(piece);
            return;
        }
        self.gathered.bytes.extend_from_slice(&piece.bytes);
        self.gathered.cost += piece.cost;
        if self.gathered.bytes.len() > GATHERED {
            self.end_gathering();
        }
    }

    pub(super) fn end_gathering(&mut self) {
        if !self.gathered.bytes.is_empty() {
            let SmallChunks { bytes, cost } = std::mem::take(&mut self.gathered);
            self.chunks.push_back(Piece { bytes: bytes.freeze(), cost });
        }
    }

    /// Records that `cost` of the provider's bytes are no longer kept.
    fn spent(&mut self, cost: usize) -> Due {
        let credit = self.credit.as_mut()?;
        credit.owed = credit.owed.saturating_add(u32::try_from(cost).unwrap_or(u32::MAX));
        // Small reads are added up, since each grant is a message on the link.
        if credit.owed < credit.portion {
            return None;
        }
        Some((Arc::clone(&credit.sink), credit.number, std::mem::take(&mut credit.owed)))
    }
}
