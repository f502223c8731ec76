//! The output of a session, decoded and kept once for all viewers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use session::terminal::{
    log::{Chunk, Log},
    text::Decoder,
};

/// The pause in the output after which the screen is painted.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait for the rest of a character that was cut in two.
const LONGEST_CHARACTER: Duration = Duration::from_millis(200);
/// The memory of a chunk beside its text, in bytes, roughly.
const OVERHEAD: usize = 64;

/// The output of a session, and how far it is painted and written.
pub(super) struct Output {
    pub(super) log: Log,
    pub(super) decoder: Decoder,
    /// Whether the log was dropped from memory: the output is on the disk only.
    is_napping: bool,
    /// The number of the newest output when the log was dropped; `None` after a restart, when that
    /// number is not known.
    asleep_at: Option<u64>,
    /// The bytes of output that are not painted yet, and whether there is a screen that can fall
    /// behind.
    pub(super) unpainted: usize,
    pub(super) has_screen: bool,
    /// Whether the session is in the queue of the painting threads.
    pub(super) is_to_be_painted: bool,
    /// The number up to which chunks are on the disk, or never will be.
    pub(super) written: u64,
    pub(super) unwritten: usize,
    /// Whether the session is in the writer's queue.
    pub(super) is_queued: bool,
    last: Option<Instant>,
}

impl Output {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            log: Log::new(bound),
            decoder: Decoder::new(),
            is_napping: false,
            asleep_at: None,
            unpainted: 0,
            has_screen: false,
            is_to_be_painted: false,
            written: 0,
            unwritten: 0,
            is_queued: false,
            last: None,
        }
    }

    /// Continues the numbers after the output of an earlier daemon, which is on the disk.
    pub(super) fn go_on_after(&mut self, seq: u64) {
        self.log.resume_at(seq + session::terminal::log::RESTART_GAP);
        self.written = self.log.last_seq();
    }

    /// Output that is on the disk only, until a viewer needs it.
    pub(super) fn slept(bound: usize) -> Self {
        Self { is_napping: true, ..Self::new(bound) }
    }

    /// Drops the log from memory. The output stays on the disk.
    pub(super) fn nap(&mut self, bound: usize) {
        *self = Self { asleep_at: self.last_seq(), ..Self::slept(bound) };
    }

    /// The number of the newest output, if known.
    pub(super) fn last_seq(&self) -> Option<u64> {
        if self.is_napping { self.asleep_at } else { Some(self.log.last_seq()) }
    }

    pub(super) const fn is_napping(&self) -> bool {
        self.is_napping
    }

    /// Whether nothing is lost if the log is dropped.
    pub(super) fn may_nap(&self) -> bool {
        !self.is_napping && self.written >= self.log.last_seq()
    }

    /// Fills the log with the output from the disk.
    pub(super) fn wake_with(&mut self, chunks: Vec<Chunk>) {
        self.is_napping = false;
        for Chunk { seq, text } in chunks {
            if seq != self.log.last_seq() + 1 {
                self.log.resume_at(seq);
            }
            self.unpainted += cost(text.len());
            self.log.append(text);
        }
        self.written = self.log.last_seq();
    }

    /// When the output will have paused for long enough to be painted, if no more comes.
    pub(super) fn paint_at(&self) -> Option<Instant> {
        let is_behind = self.has_screen && self.unpainted > 0;
        self.last.filter(|_| is_behind).map(|last| last + PAUSE)
    }

    pub(super) fn end_character_at(&self) -> Option<Instant> {
        let last = self.last.filter(|_| self.decoder.is_pending());
        last.map(|last| last + LONGEST_CHARACTER)
    }

    pub(super) fn append(&mut self, text: Bytes, now: Instant) -> u64 {
        let cost = cost(text.len());
        self.unpainted += cost;
        self.unwritten += cost;
        self.last = Some(now);
        self.log.append(text)
    }

    /// Takes the chunks to be written now.
    pub(super) fn take_unwritten(&mut self) -> Vec<Chunk> {
        self.is_queued = false;
        self.unwritten = 0;
        match self.log.after(self.written) {
            Ok(chunks) => chunks.collect(),
            // Some chunks left the log before they could be written: only the rest is written.
            Err(_) => self.log.all().collect(),
        }
    }
}

/// The memory of a chunk with a text of this length, in bytes, roughly.
pub(super) const fn cost(length: usize) -> usize {
    length + OVERHEAD
}
