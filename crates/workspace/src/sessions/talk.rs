//! What clients do with a session: look at it, type into it, ask it.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use protocol::workspace::SessionId;
use session::{size::Size, viewer::ViewerId};

use super::{
    Attachment, ClientId, Past, Sessions,
    alarms::now,
    session::{Session, State},
};
use crate::{engine::PermissionAnswer, refusal::Refusal, teams::Ticket};

impl Sessions {
    /// A stream of a session's output from `after_seq` on, or from a snapshot.
    pub(crate) fn attach(
        &self,
        id: SessionId,
        client: ClientId,
        after_seq: Option<u64>,
    ) -> Result<Attachment, Refusal> {
        Ok(Attachment::new(self.get(id)?, client, after_seq))
    }

    /// What came before a number, the newest of it, as much as fits.
    pub(crate) async fn history(
        &self,
        id: SessionId,
        before_seq: u64,
        max_bytes: usize,
    ) -> Result<Past, Refusal> {
        let past = self.get(id)?.past(before_seq, max_bytes).await?;
        let (from_seq, to_seq) = past.range().unwrap_or_default();
        Ok(Past { from_seq, to_seq, data: past.text(), more: past.more })
    }

    /// Raw keys; `false`: this `input_id` was applied before, and is not again.
    pub(crate) fn type_in(
        &self,
        id: SessionId,
        client: ClientId,
        keys: Bytes,
        input_id: Option<&str>,
    ) -> Result<bool, Refusal> {
        let session = self.get(id)?;
        if let Some(input_id) = input_id
            && !session.lock().inputs.first_time(input_id)?
        {
            return Ok(false);
        }
        let typed = session.live().and_then(|engine| engine.type_in(keys));
        if typed.is_err()
            && let Some(input_id) = input_id
        {
            session.lock().inputs.take_back(input_id);
        }
        typed?;
        session.was_used(client, now());
        Ok(true)
    }

    /// A whole prompt: for an agent one turn, for a terminal the text and one Enter.
    pub(crate) fn prompt(
        &self,
        id: SessionId,
        client: Option<ClientId>,
        text: String,
    ) -> Result<(), Refusal> {
        let session = self.get(id)?;
        session.live()?.prompt(text)?;
        if let Some(client) = client {
            session.was_used(client, now());
        }
        Ok(())
    }

    /// A whole prompt of a team's, which is told by its ticket when its turn begins.
    pub(crate) fn deliver(
        &self,
        id: SessionId,
        text: String,
        ticket: Ticket,
    ) -> Result<(), Refusal> {
        self.get(id)?.live()?.prompt_for(text, ticket)
    }

    pub(crate) fn interrupt(&self, id: SessionId) -> Result<(), Refusal> {
        self.get(id)?.live()?.interrupt()
    }

    pub(crate) fn permit(&self, id: SessionId, answer: PermissionAnswer) -> Result<(), Refusal> {
        let session = self.get(id)?;
        let own = session.lock().questions.own(&answer.request_id);
        let request_id = own.ok_or_else(|| {
            Refusal::Invalid(format!("nobody asks {} any more", answer.request_id))
        })?;
        session.live()?.permit(PermissionAnswer { request_id, ..answer })
    }

    /// The session whose agent asks this, if one does.
    pub(crate) fn who_asks(&self, request_id: &str) -> Option<SessionId> {
        let asks = |session: &&Arc<Session>| session.lock().questions.own(request_id).is_some();
        self.all().iter().find(asks).map(|session| session.id)
    }

    pub(crate) fn resize(
        &self,
        id: SessionId,
        client: ClientId,
        cols: u16,
        rows: u16,
        visible: bool,
    ) -> Result<(), Refusal> {
        let (session, now) = (self.get(id)?, now());
        session.change(now, |state| state.windows.resize(client, (cols, rows), visible, now))
    }

    pub(crate) fn take_control(&self, id: SessionId, client: ClientId) -> Result<(), Refusal> {
        let (session, now) = (self.get(id)?, now());
        session.change(now, |state| state.windows.take_control(client, now))
    }

    /// A client has gone: it looks at nothing any more.
    pub(crate) fn client_gone(&self, client: ClientId) {
        let now = now();
        for session in self.all() {
            session.change(now, |state| state.windows.leave(client, now));
        }
    }
}

impl Session {
    fn was_used(self: &Arc<Self>, client: ClientId, now: Instant) {
        self.change(now, |state| {
            state.touch();
            state.windows.typed(client, now);
        });
    }

    /// One who looked at it does not any more.
    pub(super) fn leave(self: &Arc<Self>, viewer: ViewerId, now: Instant) {
        self.change(now, |state| {
            if let Some(client) = state.viewers.remove(viewer)
                && !state.viewers.has(client)
            {
                state.windows.leave(client, now);
            }
            state.quiet_since = now;
        });
        self.tell(now);
    }

    /// Its terminal has another size from now on.
    pub(super) fn resized(self: &Arc<Self>, size: Size) {
        let mut painter = self.painter();
        let mut state = self.lock();
        painter.resize(state.output.log.last_seq(), size);
        drop(painter);
        let State { viewers, windows, .. } = &mut *state;
        viewers.tell_size(|client| windows.is_news_for(client));
        drop(state);
        if let Ok(engine) = self.live() {
            engine.resize(size);
        }
        self.news.notify_waiters();
        self.commons.keeper.keep_soon(self);
    }
}
