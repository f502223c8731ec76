//! The part of a session that handles output: it is shown to viewers, and painted and written in batches. Earlier
//! output is read from memory as far as that reaches, and beyond that from the disk.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, MutexGuard, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;
use jiff::Timestamp;
use protocol::workspace::{
    AgentEvent, ServerMessage,
    client::{AgentEventMessage, SessionSnapshot, TurnEvents},
};
use session::terminal::{
    log::{Chunk, Gather, History as PastOutput},
    size::Size,
};
use tokio::task;

use super::{Session, SessionState, clients};
use crate::{
    refusal::Refusal,
    sessions::{
        clock::now,
        output::{
            Output,
            history::writer::{AT_ONCE, WriteHistory},
            painter::Painter,
            painting::Paint,
            screen::{LITTLE, OutputLock},
            turn_log,
        },
    },
};

/// The size of an agent's snapshot, in bytes: as many of its newest lines as fit.
const LINES: usize = 256 * 1024;

/// New output.
impl Session {
    /// Takes output of a terminal, as read.
    pub(crate) fn output(self: &Arc<Self>, bytes: Bytes) {
        self.make_room(bytes.len());
        let now = now();
        let mut state = self.lock();
        let mut text = state.output.decode(bytes);
        // Each query ends a chunk, so that it is known which clients were sent it.
        for _ in 0..clients::MOST_QUERIES {
            let Some((end, query)) = state.queries.find(&text) else {
                state.output.note_undecided(0);
                return self.append(state, text, now);
            };
            let piece = text.split_to(end);
            state.output.note_undecided(text.len());
            self.append(state, piece, now);
            self.answer_query(&query, now);
            state = self.lock();
        }
        state.queries.pass(&text);
        state.output.note_undecided(0);
        self.append(state, text, now);
    }

    /// Takes output that is valid text already, and an agent's events that follow it.
    pub(crate) fn line(self: &Arc<Self>, text: Bytes, events: Vec<AgentEvent>) {
        let (session_id, now, at) = (self.id, now(), Timestamp::now());
        let mut guard = self.lock();
        let SessionState { output, turns, .. } = &mut *guard;
        output.prepare_asides(&text, |seq| {
            let message = |event| {
                let number = Some(turns.append(&event, at));
                ServerMessage::AgentEvent(AgentEventMessage { session_id, seq, number, event })
            };
            events.into_iter().map(message).collect()
        });
        self.append(guard, text, now);
    }

    /// Puts the session into the writer's queue, so that all its output is written soon.
    pub(crate) fn write_soon(self: &Arc<Self>) {
        let joins_writer = self.lock().output.join_writer();
        if joins_writer {
            self.shared.writer.add(Arc::<Self>::clone(self));
        }
    }

    /// Adds an aside after all output so far.
    pub(crate) fn say(self: &Arc<Self>, message: ServerMessage) {
        self.lock().output.append_aside(message);
        self.news.notify_waiters();
    }

    fn append(
        self: &Arc<Self>,
        mut guard: MutexGuard<'_, SessionState>,
        text: Bytes,
        now: Instant,
    ) {
        let length = text.len();
        let SessionState { life, output, viewers, .. } = &mut *guard;
        if length > 0 {
            life.port.read(&text, now);
            output.append(text, now);
            life.touch();
            viewers.check_backlogs(output.log(), now);
        }
        let joins_writer = output.join_writer();
        let is_urgent = output.unwritten() > AT_ONCE;
        let paints = self.is_terminal && output.needs_painting();
        self.rearm(&mut guard, now);
        // Released before the viewers wake, since they take this lock at once.
        drop(guard);
        self.news.notify_waiters();
        self.shared.output_bytes.fetch_add(length as u64, Ordering::Relaxed);
        if joins_writer {
            self.shared.writer.add(Arc::<Self>::clone(self));
        }
        if is_urgent {
            self.shared.writer.hurry();
        }
        if paints {
            self.paint_soon();
        }
    }
}

/// The screen. The reader of a terminal waits in [`Session::room`] until the log surely keeps all
/// unpainted output. So a program writes no faster than its screen can be painted.
impl Session {
    /// Waits until this many more bytes of output can be taken.
    pub(crate) async fn room(self: &Arc<Self>, bytes: usize) {
        loop {
            // Registered before the check, so that no painting in between is missed.
            let mut painted = pin!(self.screen.painted());
            painted.as_mut().enable();
            if !self.lock().output.is_too_much(bytes) {
                return;
            }
            self.paint_soon();
            painted.await;
        }
    }

    /// Paints at once if this many bytes would not fit: their source did not wait for room.
    fn make_room(&self, bytes: usize) {
        if self.is_terminal && self.lock().output.is_too_much(bytes) {
            self.screen.catch_up(self);
        }
    }

    /// Puts the session into the queue of the painting threads.
    fn paint_soon(self: &Arc<Self>) {
        let joins = self.lock().output.join_painting();
        if joins {
            self.shared.painting.add(Arc::<Self>::clone(self));
        }
    }

    /// Paints the screen, if the output has paused for long enough.
    pub(super) fn paint_if_paused(self: &Arc<Self>, now: Instant) {
        let unpainted = {
            let output = &self.lock().output;
            output.paint_at().filter(|at| *at <= now).map(|_| output.unpainted())
        };
        match unpainted {
            Some(unpainted) if unpainted <= LITTLE => self.screen.catch_up(&**self),
            Some(_) => self.paint_soon(),
            None => {}
        }
    }

    /// The current screen, painted on another thread if that takes long.
    pub(super) async fn screen_soon(self: &Arc<Self>) -> Result<SessionSnapshot, Refusal> {
        if self.lock().output.unpainted() <= LITTLE {
            return Ok(self.screen_now());
        }
        let session = Arc::clone(self);
        let painted = task::spawn_blocking(move || session.screen_now()).await;
        painted.map_err(|error| Refusal::failed(&error))
    }

    /// The current screen.
    pub(crate) fn screen_now(&self) -> SessionSnapshot {
        let (seq, size, data) = self.screen.snapshot(self);
        SessionSnapshot { session_id: self.id, seq, cols: size.cols, rows: size.rows, data }
    }

    /// The newest whole lines of an agent.
    pub(super) async fn lines_now(self: &Arc<Self>) -> Result<SessionSnapshot, Refusal> {
        let (seq, (cols, rows)) = {
            let state = self.lock();
            (state.output.log().last_seq(), state.viewers.windows().cells())
        };
        let past = self.past(seq + 1, LINES).await?;
        let mut data = past.text();
        if past.more
            && let Some(end) = data.find('\n')
        {
            data.drain(..=end);
        }
        Ok(SessionSnapshot { session_id: self.id, seq, cols, rows, data })
    }
}

/// Memory and disk.
impl Session {
    /// The newest output before a number, as much as fits.
    pub(crate) async fn past(
        self: &Arc<Self>,
        before_seq: u64,
        max_bytes: usize,
    ) -> Result<PastOutput, Refusal> {
        let mut gather = Gather::new(before_seq, max_bytes);
        // The newest output is in memory; only older output is read from the disk.
        if !gather.add(self.lock().output.log().all()) {
            return Ok(gather.finish());
        }
        self.on_disk(move |session| {
            session.history.lock().gather(&mut gather)?;
            Ok(gather.finish())
        })
        .await
    }

    /// The newest events of an agent's turns between two numbers, as many as fit.
    pub(crate) async fn past_turns(
        self: &Arc<Self>,
        after: u64,
        before: u64,
        max_bytes: usize,
    ) -> Result<TurnEvents, Refusal> {
        let mut gather = Gather::new(before, max_bytes);
        let (is_enough, wants_more) = {
            let state = self.lock();
            let log = state.turns.log();
            (log.first_seq() <= after.saturating_add(1), gather.add(log.all()))
        };
        let past = match is_enough || !wants_more {
            true => gather.finish(),
            false => {
                self.on_disk(move |session| {
                    session.turn_history.lock().gather(&mut gather)?;
                    Ok(gather.finish())
                })
                .await?
            }
        };
        let more = past.more && past.chunks.first().is_some_and(|first| first.seq > after);
        let chunks: Vec<Chunk> = past.chunks.into_iter().filter(|it| it.seq > after).collect();
        Ok(TurnEvents { session_id: self.id, events: turn_log::read(&chunks), more })
    }

    /// Reads the output of a terminal that has ended into memory, for a viewer.
    pub(crate) async fn load(self: &Arc<Self>) -> Result<(), Refusal> {
        let bound = self.shared.log_bytes;
        self.on_disk(move |session| {
            let mut gather = Gather::new(u64::MAX, bound);
            session.history.lock().gather(&mut gather)?;
            let chunks = gather.finish().chunks;
            // The screen's lock before the session's; the history's is released by now.
            let mut painter = session.screen.lock();
            let mut state = session.lock();
            // Another viewer may have loaded the output meanwhile.
            if state.output.is_unloaded() {
                *painter = Painter::new(state.viewers.windows().size());
                state.output.load(chunks);
            }
            Ok(())
        })
        .await
    }

    /// Drops the output of an ended terminal from memory, if it is on the disk and has no viewers.
    pub(super) fn unload(&self) {
        // Both locks are held: a viewer that attaches now must find a log and a screen that belong together.
        let mut painter = self.screen.lock();
        let mut state = self.lock();
        if state.viewers.is_empty() && state.output.may_unload() {
            *painter = Painter::new(state.viewers.windows().size());
            state.output.unload();
        }
    }

    async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Refusal> {
        let session = Arc::clone(self);
        let done = task::spawn_blocking(move || read(&session)).await;
        let done = done.map_err(|error| Refusal::failed(&error))?;
        done.map_err(|error| {
            Refusal::Failed(format!("the session's history cannot be read: {error}"))
        })
    }
}

impl OutputLock for Session {
    fn with_output<T>(&self, act: impl FnOnce(&mut Output, Size) -> T) -> T {
        let mut state = self.lock();
        let size = state.viewers.windows().size();
        act(&mut state.output, size)
    }
}

impl Paint for Session {
    /// A painting thread must survive a panic. So the panic is caught here, and the screen begins again, blank.
    fn paint(&self) {
        // Before the painting, so that output that comes meanwhile puts the session into the queue again.
        self.lock().output.leave_painting();
        if catch_unwind(AssertUnwindSafe(|| self.screen.catch_up(self))).is_err() {
            tracing::error!(session = %self.id, "a screen could not be painted, and begins anew");
            self.screen.begin_anew(self);
        }
    }
}

impl WriteHistory for Session {
    /// Output that cannot be written is tried again with the next output, while the log keeps it.
    fn write_history(&self) {
        self.write_turns();
        let mut history = self.history.lock();
        // The session's lock is held for the copy only, because the disk may be slow.
        let chunks = {
            let mut state = self.lock();
            if state.life.is_gone {
                return;
            }
            state.output.take_unwritten()
        };
        let Some(last) = chunks.last().map(|chunk| chunk.seq) else { return };
        match history.append(&chunks) {
            Ok(()) => self.lock().output.note_written(last),
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "cannot write history");
            }
        }
    }
}

impl Session {
    /// Writes the events of turns that are not on the disk. Events that cannot be written are tried again
    /// with the next output.
    fn write_turns(&self) {
        let mut history = self.turn_history.lock();
        let events = {
            let state = self.lock();
            if state.life.is_gone {
                return;
            }
            state.turns.unwritten()
        };
        let Some(last) = events.last().map(|chunk| chunk.seq) else { return };
        match history.append(&events) {
            Ok(()) => self.lock().turns.note_written(last),
            Err(error) => {
                tracing::warn!(session = %self.id, %error, "cannot write the events of turns");
            }
        }
    }
}
