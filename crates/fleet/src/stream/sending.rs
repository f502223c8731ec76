//! The bytes that were written, until the other end has them.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Kind, MOST_PAYLOAD, WINDOW};

/// The bytes of one direction at the end that writes them.
#[derive(Debug)]
pub(super) struct Sending {
    /// The bytes that are not acknowledged, in the pieces in which they were written.
    pieces: VecDeque<(u64, Bytes)>,
    written: u64,
    sent: u64,
    /// How many are acknowledged; one more than there are when the other end knows the end.
    acknowledged: u64,
    limit: u64,
    is_finished: bool,
    is_end_sent: bool,
    /// Whether the first frame is to open the stream, and whether the other end has answered.
    opens: bool,
    is_confirmed: bool,
}

impl Default for Sending {
    fn default() -> Self {
        Self {
            pieces: VecDeque::new(),
            written: 0,
            sent: 0,
            acknowledged: 0,
            limit: WINDOW,
            is_finished: false,
            is_end_sent: false,
            opens: false,
            is_confirmed: true,
        }
    }
}

impl Sending {
    /// This end opens the stream.
    pub(super) fn begin(&mut self) {
        (self.opens, self.is_confirmed) = (true, false);
    }

    pub(super) fn room(&self) -> usize {
        let unacknowledged = self.written - self.acknowledged.min(self.written);
        if self.is_finished { 0 } else { usize::try_from(WINDOW - unacknowledged).unwrap_or(0) }
    }

    /// Takes bytes, no more than there is room for.
    pub(super) fn write(&mut self, bytes: Bytes, is_last: bool) {
        if self.is_finished {
            return;
        }
        self.is_finished = is_last;
        if !bytes.is_empty() {
            let at = self.written;
            self.written += bytes.len() as u64;
            self.pieces.push_back((at, bytes));
        }
    }

    /// The next frame to send, if there is one that may be sent.
    pub(super) fn next(&mut self) -> Option<(Kind, u64, Bytes, bool)> {
        let end = self.written.min(self.limit).min(self.sent + MOST_PAYLOAD as u64);
        let payload = self.piece(self.sent, end);
        let offset = self.sent;
        let after = offset + payload.len() as u64;
        let is_last = self.is_finished && after == self.written;
        let has_end = is_last && !self.is_end_sent;
        if payload.is_empty() && !has_end && !self.opens {
            return None;
        }
        let kind = if std::mem::take(&mut self.opens) { Kind::Open } else { Kind::Data };
        self.sent = after;
        self.is_end_sent |= is_last;
        Some((kind, offset, payload, is_last))
    }

    /// The bytes that opened the stream.
    pub(super) fn first(&self) -> (Bytes, bool) {
        let payload = self.piece(0, self.sent);
        let is_last = self.is_end_sent && payload.len() as u64 == self.written;
        (payload, is_last)
    }

    /// The frames with the bytes of this range that were sent already.
    pub(super) fn repeats(&self, from: u64, until: u64) -> Vec<(u64, Bytes, bool)> {
        let (mut at, until) = (from, until.min(self.sent));
        let mut frames = Vec::new();
        while at < until {
            let payload = self.piece(at, until);
            if payload.is_empty() {
                break;
            }
            let offset = at;
            at += payload.len() as u64;
            frames.push((offset, payload, self.is_end_sent && at == self.written));
        }
        frames
    }

    /// Notes what the other end has and takes. Returns whether that is more than before.
    pub(super) fn acknowledge(&mut self, received: u64, limit: u64) -> bool {
        let most = self.sent + u64::from(self.is_end_sent);
        let is_news = received > self.acknowledged || limit > self.limit || !self.is_confirmed;
        self.is_confirmed = true;
        self.acknowledged = self.acknowledged.max(received.min(most));
        self.limit = self.limit.max(limit);
        let has = self.acknowledged;
        while self.pieces.front().is_some_and(|(at, piece)| at + piece.len() as u64 <= has) {
            self.pieces.pop_front();
        }
        is_news
    }

    /// Whether this end waits for a word of the other one.
    pub(super) fn is_waiting(&self) -> bool {
        let sent = self.sent + u64::from(self.is_end_sent);
        !self.is_confirmed || self.acknowledged < sent || self.sent < self.written
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// How many bytes were sent, and whether these were all.
    pub(super) fn sent(&self) -> (u64, bool) {
        (self.sent, self.is_end_sent)
    }

    /// Whether all was sent.
    pub(super) fn has_sent_all(&self) -> bool {
        self.is_end_sent
    }

    /// Whether the other end has all, and knows that it is all.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.is_end_sent && self.acknowledged > self.written
    }

    /// The bytes from `from` up to `until`, as far as they are in one piece.
    fn piece(&self, from: u64, until: u64) -> Bytes {
        let holds = |(at, piece): &&(u64, Bytes)| (*at..*at + piece.len() as u64).contains(&from);
        let Some((at, piece)) = self.pieces.iter().find(holds) else { return Bytes::new() };
        let end = until.min(at + piece.len() as u64).max(from);
        // Both are within the piece, whose length is a usize.
        piece.slice((from - at) as usize..(end - at) as usize)
    }
}
