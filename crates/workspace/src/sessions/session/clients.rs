//! The part of a session that serves clients: they view it, type into it, have windows of their own
//! sizes, and their terminals answer the program's queries.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;
use session::terminal::{
    query::{Queries, Query},
    viewer::ViewerId,
};

use super::{Session, SessionState};
use crate::{
    engine::TypingTime,
    identity::ClientId,
    refusal::Refusal,
    sessions::{
        attached_viewers::{
            AttachedViewers, Demand,
            steps::{Contents, SnapshotNeed, StreamItem, StreamStep},
        },
        client_inputs::questions::Questions,
        clock::now,
        output::Output,
    },
};

/// The most queries of one read that are answered. A program that waits for answers sends fewer.
pub(crate) const MOST_QUERIES: usize = 64;

/// Views.
impl Session {
    /// Adds a viewer that wants the output after a number, or a snapshot.
    pub(crate) fn attach(
        self: &Arc<Self>,
        client: ClientId,
        after_seq: Option<u64>,
        now: Instant,
    ) -> (ViewerId, Arc<Demand>) {
        let patience = self.shared.lag_timeout;
        let attached = self.change(now, |state| {
            state.viewers.add(client, after_seq, patience, &state.output, now)
        });
        self.announce(now);
        attached
    }

    /// Removes a viewer that has left.
    pub(crate) fn detach(self: &Arc<Self>, viewer: ViewerId, now: Instant) {
        self.change_windows(now, |state| {
            let client = state.viewers.client_of(viewer);
            state.viewers.remove(viewer, now);
            if let Some(client) = client.filter(|client| !state.viewers.has_client(*client)) {
                state.queries.left(self::viewer(client), now);
            }
            state.life.quiet_since = now;
        });
        self.announce(now);
    }

    /// The next step for a viewer that has room.
    pub(crate) fn step(&self, id: ViewerId, now: Instant) -> StreamStep {
        let mut state = self.lock();
        if state.life.is_gone {
            return StreamStep::End(Vec::new());
        }
        let SessionState { viewers, output, inputs, queries, .. } = &mut *state;
        let questions = &inputs.questions;
        let before = viewers.position(id);
        let step = viewers.step(id, &self.contents(output, questions), now);
        if let StreamStep::Send(sent) = &step {
            note_sent(viewers, queries, (id, before), sent, now);
        }
        step
    }

    /// Makes a snapshot for a viewer, and returns the items to send.
    pub(crate) async fn snapshot(
        self: &Arc<Self>,
        need: SnapshotNeed,
    ) -> Result<Vec<StreamItem>, Refusal> {
        let snapshot = match self.is_terminal {
            true => self.screen_soon().await?,
            false => self.lines_now().await?,
        };
        let mut state = self.lock();
        let SessionState { viewers, output, inputs, queries, .. } = &mut *state;
        let (id, now) = (need.viewer(), now());
        let before = viewers.position(id);
        let resynced = viewers.resynced(need, snapshot, &self.contents(output, &inputs.questions));
        note_sent(viewers, queries, (id, before), &resynced.items, now);
        if resynced.has_lagged {
            self.shared.resyncs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(resynced.items)
    }

    fn contents<'a>(&self, output: &'a Output, questions: &'a Questions) -> Contents<'a> {
        Contents { session: self.id, is_terminal: self.is_terminal, output, questions }
    }
}

/// Inputs and sizes.
impl Session {
    /// Applies an input, unless an input with this id was applied before; then the result is `None`.
    pub(crate) fn once<T>(
        &self,
        input_id: Option<&str>,
        apply: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        let Some(input_id) = input_id else { return apply().map(Some) };
        // A repeat over a second connection waits until it is known whether this attempt succeeds.
        let _applying = self.applying.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.lock().inputs.claim(input_id)? {
            return Ok(None);
        }
        let applied = apply();
        if applied.is_err() {
            self.lock().inputs.release(input_id);
        }
        applied.map(Some)
    }

    /// Types what a client sent, without the answers of its terminal that the program does not expect. Returns whether
    /// this is typed now or later, and whether a person typed any of it.
    pub(crate) fn type_in(
        self: &Arc<Self>,
        client: ClientId,
        keys: Bytes,
        now: Instant,
    ) -> Result<(TypingTime, bool), Refusal> {
        let filtered = self.change(now, |state| state.queries.filter(viewer(client), keys, now));
        let typed = self.live()?.type_in(filtered.keys)?;
        Ok((typed, filtered.has_keys))
    }

    /// Notes that a client has typed.
    pub(crate) fn typed(self: &Arc<Self>, client: ClientId, now: Instant) {
        self.change_windows(now, |state| {
            state.life.touch();
            state.viewers.typed(client, now);
        });
    }

    /// Changes the windows of viewers. If a viewer has not got the size that it requested, viewers are woken, so that
    /// they are sent the size that the terminal has.
    pub(crate) fn change_windows<T>(
        self: &Arc<Self>,
        now: Instant,
        change: impl FnOnce(&mut SessionState) -> T,
    ) -> T {
        let (changed, is_in_vain) = self.change(now, |state| {
            let changed = change(state);
            (changed, state.viewers.take_vain_wish())
        });
        if is_in_vain {
            self.news.notify_waiters();
        }
        changed
    }

    /// Resizes the terminal, if that is due. Viewers get the size and a repainted screen.
    pub(super) fn resize_if_due(self: &Arc<Self>, now: Instant) {
        // The screen's lock is held throughout, so that a client that learns the size also gets a
        // screen of that size.
        let mut painter = self.screen.lock_to_resize(&**self);
        let mut state = self.lock();
        let Some(size) = state.viewers.take_new_size(now) else { return };
        // Only terminals have screens.
        if self.is_terminal {
            painter.resize(state.output.log().last_seq(), size);
        }
        drop((state, painter));
        if let Ok(engine) = self.live() {
            engine.resize(size);
        }
        self.news.notify_waiters();
        self.shared.keeper.keep_soon(self);
    }
}

/// A program's queries to its terminal.
impl Session {
    /// Answers a query that has just been appended, or leaves it to the terminal of the client in
    /// control.
    pub(super) fn answer_query(self: &Arc<Self>, query: &Query, now: Instant) {
        // The screen is painted up to the query, so the answer is that of this moment.
        let own = self.screen.answer(&**self, query);
        let answer = self.change(now, |state| {
            let by = state.viewers.in_control().map(viewer);
            state.queries.ask(query, state.output.log().last_seq(), by, own, now)
        });
        if let Some(answer) = answer {
            self.answer(answer);
        }
    }

    /// Types an answer. The engine drops it if much waits because the program reads nothing.
    pub(super) fn answer(&self, answer: Bytes) {
        if let Ok(engine) = self.live() {
            engine.answer(answer);
        }
    }
}

/// Notes which of the program's queries are in these items for a viewer, whose position was `before`.
fn note_sent(
    viewers: &AttachedViewers,
    queries: &mut Queries,
    (id, before): (ViewerId, u64),
    sent: &[StreamItem],
    now: Instant,
) {
    let has_output = sent.iter().any(|item| matches!(item, StreamItem::Output(_)));
    if let Some(client) = viewers.client_of(id).filter(|_| has_output) {
        queries.sent(viewer(client), before + 1..=viewers.position(id), now);
    }
}

/// A client's id, in the type that the machines of `session` use.
pub(super) const fn viewer(client: ClientId) -> ViewerId {
    ViewerId(client.0)
}
