//! Answers that break off, and the rest of them that another provider writes.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;

use super::{
    state::{Exchange, ExchangeState, Piece, is_estimated},
    traffic::{Head, WriteError},
};
use crate::{
    claim::Claim,
    clock::now,
    job::Usage,
    resume::{Delivered, Record, Rest},
    translate::Unreadable,
};

/// A place in an answer where another provider has resumed it, or its end was added here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seam {
    /// The name of the provider that resumed it; `None` if only the end was added here.
    pub provider: Option<Arc<str>>,
    /// How much of the answer had passed before it.
    pub delivered: Delivered,
}

/// The seams of an answer.
#[derive(Debug, Default)]
pub(crate) struct Seams {
    /// The seams that the reader has not taken, with the number of bytes that come before each.
    /// Bounded by the number of breaks that an answer may have.
    unread: VecDeque<(u64, Seam)>,
    pub(super) count: u32,
    /// How much of the answer had passed at the last seam.
    pub(super) delivered: Delivered,
}

impl Seams {
    /// The seam at which a reader is after this number of bytes.
    pub(super) fn take(&mut self, read: u64) -> Option<Seam> {
        self.unread.pop_front_if(|(at, _)| *at <= read).map(|(_, seam)| seam)
    }

    /// Whether the reader has taken all of them.
    pub(super) fn is_read(&self) -> bool {
        self.unread.is_empty()
    }
}

impl Exchange {
    /// From now on the writer of `attempt` writes the rest of the answer, with this record.
    pub(crate) fn begin_rest(&self, attempt: u32, record: Box<dyn Record>) {
        let mut state = self.lock();
        state.record = Some(record);
        state.attempt = Some(attempt);
        // Bytes of the lost provider are no credit for this one.
        state.credit = None;
        state.forget_costs();
    }

    /// The rest of an answer that has broken off. It cannot be made without a record, nor for a
    /// reader that needs no more.
    pub(crate) fn rest(&self) -> Rest {
        let mut state = self.lock();
        let discarding = state.discarding;
        match &mut state.record {
            Some(_) if discarding => Rest::No("the client needs no more of it".to_owned()),
            Some(record) => record.rest(),
            None => Rest::No("what it wrote could not be read".to_owned()),
        }
    }

    /// A copy of the record.
    pub(crate) fn record(&self) -> Option<Box<dyn Record>> {
        self.lock().record.as_ref().map(|record| record.copy())
    }

    /// Takes in the head of a provider that is to resume the answer. The client already has the
    /// first provider's head.
    pub(crate) fn go_on(
        &self,
        claim: Claim,
        head: &Head,
        now: Instant,
        seam: Seam,
    ) -> Result<(), WriteError> {
        let mut state = self.lock();
        state.writable(claim.attempt)?;
        let goes_on = state.record.as_mut().is_some_and(|record| record.goes_on(head));
        if !(head.status.is_success() && goes_on) {
            return Err(WriteError::Refused);
        }
        state.provider = Some(claim.provider);
        state.estimated |= is_estimated(head);
        state.reported = Usage::default();
        state.moved = now;
        state.mark(seam);
        self.has_seams.store(true, Ordering::Release);
        state.wake_reader();
        Ok(())
    }

    /// Ends an answer of which only these closing bytes are missing. Returns whether it is whole.
    pub(crate) fn close(&self, closing: Bytes, seam: Seam) -> bool {
        let mut state = self.lock();
        // The recorded answer ends here.
        state.record = None;
        state.mark(seam);
        self.has_seams.store(true, Ordering::Release);
        let read = state.read(closing);
        let read = state.pass(read).is_ok();
        let is_whole = read && (state.completes() || state.end_reading().is_ok());
        drop(state);
        if is_whole {
            self.finish(Ok(()));
        }
        is_whole
    }
}

impl ExchangeState {
    /// Converts bytes of the provider into the client's. They are counted as the first provider
    /// would have sent them.
    pub(super) fn read(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        let Some(record) = &mut self.record else {
            self.count(&chunk);
            return self.mapped(chunk);
        };
        match record.pass(chunk) {
            Ok(chunk) => self.recorded(chunk),
            Err(Unreadable { before, why }) => {
                let before = self.recorded(before)?;
                Err(Unreadable { before, why })
            }
        }
    }

    /// After the provider's last chunk: passes on what was held back.
    ///
    /// # Errors
    /// Why the end of the answer cannot be read.
    pub(super) fn end_reading(&mut self) -> Result<(), String> {
        if let Some(record) = &mut self.record {
            let held = record.end();
            let read = held.and_then(|held| self.recorded(held));
            self.pass(read)?;
        }
        let Some(map) = self.map.as_mut().filter(|map| !map.is_complete()) else { return Ok(()) };
        let last = map.end();
        self.pass(last)
    }

    /// Queues what could be read, even if a fault follows it.
    fn pass(&mut self, read: Result<Bytes, Unreadable>) -> Result<(), String> {
        let (bytes, passed) = match read {
            Ok(bytes) => (bytes, Ok(())),
            Err(Unreadable { before, why }) => (before, Err(why)),
        };
        // These bytes cost the provider nothing, so no credit is due.
        self.put(Piece { bytes, cost: 0 });
        passed
    }

    fn recorded(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        if chunk.is_empty() {
            self.moved = now();
            return Ok(chunk);
        }
        self.count(&chunk);
        let mapped = self.mapped(chunk);
        if mapped.is_err() {
            // What a map makes of an answer that it cannot read is no beginning that another
            // provider could continue.
            self.record = None;
        }
        mapped
    }

    fn mapped(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        match &mut self.map {
            Some(map) => map.chunk(chunk),
            None => Ok(chunk),
        }
    }

    /// Marks this place of the answer as a seam.
    fn mark(&mut self, seam: Seam) {
        self.end_gathering();
        self.seams.count += 1;
        self.seams.delivered = seam.delivered;
        self.seams.unread.push_back((self.passed, seam));
    }
}
