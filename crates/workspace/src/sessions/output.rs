//! A session's output: decoded, kept once for all, shown to viewers, painted and written in batches.

use std::{
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use protocol::workspace::ServerMessage;
use session::{
    log::{Chunk, Log},
    text::Decoder,
};

use super::{
    alarms::now,
    history::{Segments, writer::AT_ONCE},
    session::{Session, State},
};

/// For so long output has paused when it is painted.
const PAUSE: Duration = Duration::from_millis(20);
/// A character whose end does not come for so long has no end.
const LONGEST_CHARACTER: Duration = Duration::from_millis(200);
/// What a chunk costs beside its text, roughly.
const OVERHEAD: usize = 64;

/// The output of a session, and how far others are with it.
pub(super) struct Output {
    pub(super) log: Log,
    decoder: Decoder,
    /// Whether the log is empty although there was output: it is on the disk.
    is_napping: bool,
    /// The number of the newest output when it fell asleep; after a restart it is not known.
    asleep_at: Option<u64>,
    /// How much the painter has not had, in bytes, and whether it has a screen that could fall behind.
    pub(super) unpainted: usize,
    pub(super) has_screen: bool,
    /// Whether it is among those that are to be painted.
    pub(super) is_to_be_painted: bool,
    /// The number of the last chunk that is on the disk, or never will be.
    written: u64,
    unwritten: usize,
    /// Whether the writer has it among those that it is to write.
    is_queued: bool,
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

    /// Goes on after output of an earlier life, which is on the disk.
    pub(super) fn go_on_after(&mut self, seq: u64) {
        self.log.resume_at(seq + session::log::RESTART_GAP);
        self.written = self.log.last_seq();
    }

    /// Keeps its output on disk only until it is wanted; there has been none since the server started.
    pub(super) fn slept(bound: usize) -> Self {
        Self { is_napping: true, ..Self::new(bound) }
    }

    /// Has its output on the disk only, until it is wanted.
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

    /// Takes what was on the disk.
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

    /// When it will have paused for long enough.
    pub(super) fn paint_at(&self) -> Option<Instant> {
        let is_behind = self.has_screen && self.unpainted > 0;
        self.last.filter(|_| is_behind).map(|last| last + PAUSE)
    }

    pub(super) fn end_character_at(&self) -> Option<Instant> {
        let last = self.last.filter(|_| self.decoder.is_pending());
        last.map(|last| last + LONGEST_CHARACTER)
    }

    fn append(&mut self, text: Bytes, now: Instant) -> u64 {
        let cost = cost(text.len());
        self.unpainted += cost;
        self.unwritten += cost;
        self.last = Some(now);
        self.log.append(text)
    }

    /// What is to be written now.
    fn take_unwritten(&mut self) -> Vec<Chunk> {
        self.is_queued = false;
        self.unwritten = 0;
        match self.log.after(self.written) {
            Ok(chunks) => chunks.collect(),
            Err(_) => self.log.all().collect(),
        }
    }
}

/// What a chunk costs, roughly.
pub(super) const fn cost(length: usize) -> usize {
    length + OVERHEAD
}

impl Session {
    /// Output of a terminal, as it was read.
    pub(super) fn output(self: &Arc<Self>, bytes: Bytes) {
        self.make_room(bytes.len());
        let now = now();
        let mut state = self.lock();
        let text = state.output.decoder.push(bytes);
        self.append(state, text, now);
    }

    /// Output that is text already, and the asides that are made of its number.
    pub(super) fn line(
        self: &Arc<Self>,
        text: Bytes,
        asides: impl FnOnce(u64) -> Vec<ServerMessage>,
    ) {
        let now = now();
        let mut state = self.lock();
        let seq = state.output.log.last_seq() + u64::from(!text.is_empty());
        asides(seq).into_iter().for_each(|aside| state.asides.push(seq, aside));
        self.append(state, text, now);
    }

    /// Says something beside the output, after all of it so far.
    pub(super) fn say(self: &Arc<Self>, message: ServerMessage) {
        let mut state = self.lock();
        let seq = state.output.log.last_seq();
        state.asides.push(seq, message);
        drop(state);
        self.news.notify_waiters();
    }

    /// What stands for a character that will have no end, if one has begun.
    pub(super) fn end_character_if_due(self: &Arc<Self>, state: &mut State, now: Instant) {
        if state.output.end_character_at().is_some_and(|at| at <= now) {
            self.end_character(state, now);
        }
    }

    pub(super) fn end_character(self: &Arc<Self>, state: &mut State, now: Instant) {
        if let Some(text) = state.output.decoder.flush() {
            state.output.append(text, now);
            self.news.notify_waiters();
        }
    }

    fn append(self: &Arc<Self>, mut state: MutexGuard<'_, State>, text: Bytes, now: Instant) {
        let length = text.len();
        if length > 0 {
            state.port.read(&text, now);
            state.output.append(text, now);
            state.touch();
            let State { viewers, output, .. } = &mut *state;
            viewers.look_at_backlogs(&output.log, now);
        }
        let queued = std::mem::replace(&mut state.output.is_queued, true);
        let is_much = state.output.unwritten > AT_ONCE;
        let paints = self.is_terminal && state.output.is_much_unpainted();
        self.rearm(&mut state, now);
        drop(state);
        self.news.notify_waiters();
        self.commons.output_bytes.fetch_add(length as u64, Ordering::Relaxed);
        if !queued {
            self.commons.writer.add(Arc::clone(self));
        }
        if is_much {
            self.commons.writer.hurry();
        }
        if paints {
            self.paint_soon();
        }
    }

    pub(super) fn segments(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all output that is not yet on the disk. It blocks. What cannot be written is tried again
    /// with the next output, as long as it is kept.
    pub(crate) fn write_history(&self) {
        let mut segments = self.segments();
        let chunks = {
            let mut state = self.lock();
            if state.is_gone {
                return;
            }
            state.output.take_unwritten()
        };
        let Some(last) = chunks.last().map(|chunk| chunk.seq) else { return };
        match segments.append(&chunks) {
            Ok(()) => self.lock().output.written = last,
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "cannot write history");
            }
        }
    }
}
