//! Output on its way through a session: decoded, kept, shown to viewers, painted and written in
//! batches.

use std::{
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;
use protocol::workspace::ServerMessage;

use super::{
    clock::now,
    history::{Segments, writer::AT_ONCE},
    session::{Session, SessionState},
};

impl Session {
    /// Takes output of a terminal, as read.
    pub(super) fn output(self: &Arc<Self>, bytes: Bytes) {
        self.make_room(bytes.len());
        let now = now();
        let mut state = self.lock();
        let text = state.output.decoder.push(bytes);
        self.append(state, text, now);
    }

    /// Takes output that is valid text already, and its asides: `asides` makes them from the number
    /// of the output.
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

    /// Adds an aside after all output so far.
    pub(super) fn say(self: &Arc<Self>, message: ServerMessage) {
        let mut state = self.lock();
        let seq = state.output.log.last_seq();
        state.asides.push(seq, message);
        drop(state);
        self.news.notify_waiters();
    }

    /// Ends an incomplete character with a replacement, if its rest has not come in time.
    pub(super) fn end_character_if_due(self: &Arc<Self>, state: &mut SessionState, now: Instant) {
        if state.output.end_character_at().is_some_and(|at| at <= now) {
            self.end_character(state, now);
        }
    }

    pub(super) fn end_character(self: &Arc<Self>, state: &mut SessionState, now: Instant) {
        if let Some(text) = state.output.decoder.flush() {
            state.output.append(text, now);
            self.news.notify_waiters();
        }
    }

    fn append(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, SessionState>,
        text: Bytes,
        now: Instant,
    ) {
        let length = text.len();
        if length > 0 {
            state.port.read(&text, now);
            state.output.append(text, now);
            state.touch();
            let SessionState { viewers, output, .. } = &mut *state;
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

    /// Writes all output that is not yet on the disk. It blocks. Output that cannot be written is
    /// tried again with the next output, as long as the log keeps it.
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
