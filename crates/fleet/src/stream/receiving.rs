//! The bytes that came, in order.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::WINDOW;
use crate::rules::Rules;

/// The shortest time between two requests for the same missing bytes.
const AGAIN: Duration = Duration::from_millis(100);

/// The bytes of one direction at the end that reads them.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) rules: Rules,
    /// How many came without a hole.
    received: u64,
    consumed: u64,
    /// The limit that was named last.
    offered: u64,
    /// The bytes that came in order and were not handed on, and those that came too early.
    ready: BTreeMap<u64, Bytes>,
    early: BTreeMap<u64, Bytes>,
    end: Option<u64>,
    has_said_end: bool,
    /// The last request for missing bytes: where they begin, and when it was made.
    request: Option<(u64, Instant)>,
}

impl Receiving {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            received: 0,
            consumed: 0,
            offered: WINDOW,
            ready: BTreeMap::new(),
            early: BTreeMap::new(),
            end: None,
            has_said_end: false,
            request: None,
        }
    }

    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// How many bytes may come in all.
    pub(super) fn limit(&self) -> u64 {
        self.offered
    }

    /// The limit to name in a frame.
    pub(super) fn offer(&mut self) -> u64 {
        self.offered = self.consumed + WINDOW;
        self.offered
    }

    /// The acknowledgement that a frame carries of the bytes that came.
    pub(super) fn acknowledged(&self) -> u64 {
        self.received + u64::from(self.is_ended())
    }

    /// Notes bytes that were used. Returns whether the other end should hear of it now.
    pub(super) fn consume(&mut self, bytes: u64) -> bool {
        self.consumed = (self.consumed + bytes).min(self.received);
        self.consumed + WINDOW - self.offered >= WINDOW / 4
    }

    pub(super) fn ends_at(&mut self, end: u64) {
        self.end.get_or_insert(end);
    }

    /// Whether all came.
    pub(super) fn is_ended(&self) -> bool {
        self.end == Some(self.received)
    }

    /// Whether that was not said before.
    pub(super) fn says_end(&mut self) -> bool {
        !std::mem::replace(&mut self.has_said_end, true)
    }

    /// Takes bytes within the limit. Returns whether there is no hole before them.
    pub(super) fn take(&mut self, offset: u64, payload: Bytes) -> bool {
        if offset > self.received && self.rules.gaps {
            // Of two pieces with one beginning the longer is kept.
            let known = self.early.get(&offset).map_or(0, Bytes::len);
            // Pieces that overlap could be more than a window: what is not kept is asked for again.
            if payload.len() > known && (self.early_bytes() + payload.len()) as u64 <= WINDOW {
                self.early.insert(offset, payload);
            }
            return false;
        }
        self.append(offset, payload);
        while let Some((offset, piece)) = self.early.pop_first() {
            if offset > self.received {
                self.early.insert(offset, piece);
                break;
            }
            self.append(offset, piece);
        }
        true
    }

    /// The next bytes in order.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.ready.pop_first().map(|(_, piece)| piece)
    }

    /// The end of the hole before `offset`, if it is to be asked for now.
    pub(super) fn hole(&mut self, now: Instant, offset: u64) -> Option<u64> {
        let lately = |(from, at): (u64, Instant)| from == self.received && now < at + AGAIN;
        if self.request.is_some_and(lately) {
            return None;
        }
        self.request = Some((self.received, now));
        Some(self.early.keys().next().map_or(offset, |early| offset.min(*early)))
    }

    /// How many bytes are kept that came too early.
    pub(super) fn early_bytes(&self) -> usize {
        self.early.values().map(Bytes::len).sum()
    }

    fn append(&mut self, offset: u64, mut payload: Bytes) {
        let end = offset + payload.len() as u64;
        if end <= self.received {
            return;
        }
        let known = self.received.saturating_sub(offset);
        // It is less than the payload's length.
        let fresh = payload.split_off(known as usize);
        self.ready.insert(self.received, fresh);
        self.received = end;
    }
}
