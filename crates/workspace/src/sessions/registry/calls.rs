//! The calls of clients: view a session, type into it, prompt it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::workspace::{
    AgentEvent, SessionId,
    client::{History, TurnEvents},
};

use super::Sessions;
use crate::{
    engine::{PermissionAnswer, Receipt, TypingTime},
    identity::ClientId,
    refusal::Refusal,
    sessions::{attachment::Attachment, clock::now, feed::Feed, session::Session},
};

const NOT_STORED: &str =
    "Prompts that wait are lost if the server ends before their turns: they cannot be stored";

/// The acceptance of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptAcceptance {
    /// Whether the prompt was taken now. Otherwise an earlier prompt had the same `input_id`.
    pub is_new: bool,
    /// The number of the prompt's turn, if the session has turns and the number is known.
    pub turn: Option<u64>,
}

impl Sessions {
    /// Attaches a client to a session: the stream of the output after `after_seq`, or of a snapshot
    /// and the output after it.
    pub fn attach(
        &self,
        id: SessionId,
        client: ClientId,
        after_seq: Option<u64>,
    ) -> Result<Attachment, Refusal> {
        Ok(Attachment::new(self.get(id)?, client, after_seq))
    }

    /// The newest output before a number, as much as fits into this many bytes.
    pub async fn history(
        &self,
        id: SessionId,
        before_seq: u64,
        max_bytes: usize,
    ) -> Result<History, Refusal> {
        let past = self.get(id)?.past(before_seq, max_bytes).await?;
        let (from_seq, to_seq) = past.range().unwrap_or_default();
        Ok(History { session_id: id, from_seq, to_seq, data: past.text(), more: past.more })
    }

    /// The newest events of an agent's turns between two numbers, as many as fit into this many bytes.
    pub async fn turns(
        &self,
        id: SessionId,
        (after, before): (u64, u64),
        max_bytes: usize,
    ) -> Result<TurnEvents, Refusal> {
        self.get(id)?.past_turns(after, before, max_bytes).await
    }

    /// Types raw keys. Returns `None` if this `input_id` was applied before: the keys are not typed
    /// again.
    pub fn type_in(
        &self,
        id: SessionId,
        client: ClientId,
        keys: Bytes,
        input_id: Option<&str>,
    ) -> Result<Option<TypingTime>, Refusal> {
        let session = self.get(id)?;
        let typed = session.once(input_id, || session.type_in(client, keys, now()))?;
        // Answers that a client's terminal gives by itself do not give its window precedence.
        if typed.as_ref().is_some_and(|(_, by_person)| *by_person) {
            session.typed(client, now());
        }
        Ok(typed.map(|(typed, _)| typed))
    }

    /// Gives a session a whole prompt: for an agent one turn, for a terminal the text and one Enter.
    pub fn prompt(
        &self,
        id: SessionId,
        client: Option<ClientId>,
        text: String,
        input_id: Option<&str>,
    ) -> Result<PromptAcceptance, Refusal> {
        let session = self.get(id)?;
        let Some(turn) = session.once(input_id, || session.live()?.prompt(text))? else {
            let turn = input_id.and_then(|input_id| session.lock().inputs.turn_of(input_id));
            return Ok(PromptAcceptance { is_new: false, turn });
        };
        if let Some(input_id) = input_id {
            let mut state = session.lock();
            state.life.facts.note_prompt(input_id);
            if let Some(turn) = turn {
                state.inputs.note_turn(input_id, turn);
            }
        }
        if let Some(client) = client {
            session.typed(client, now());
        }
        Ok(PromptAcceptance { is_new: true, turn })
    }

    /// Waits until the prompts that a session has taken are stored, so that they outlive this server. `None` for a
    /// terminal, whose prompts were typed and do not wait. If they cannot be stored, viewers get a notice.
    pub fn prompts_stored(&self, id: SessionId) -> Option<BoxFuture<'static, ()>> {
        let session = self.get(id).ok().filter(|session| !session.is_terminal)?;
        Some(Box::pin(async move {
            if let Err(refusal) = session.shared.keeper.keep(&session).await {
                tracing::error!(session = %session.id, %refusal, "cannot keep a prompt");
                let message = format!("{NOT_STORED} ({refusal}).");
                Feed::new(&session).event(AgentEvent::Notice { message });
            }
        }))
    }

    /// Gives a session a prompt for a caller that has to know when its turn begins.
    pub fn deliver(&self, id: SessionId, text: String, receipt: Receipt) -> Result<(), Refusal> {
        self.get(id)?.live()?.prompt_for(text, receipt)
    }

    /// Ends the current turn; a terminal gets what Ctrl-C types.
    pub fn interrupt(&self, id: SessionId) -> Result<(), Refusal> {
        self.get(id)?.live()?.interrupt()
    }

    /// Answers an agent's open question. `answer.request_id` is the id that clients have.
    pub fn permit(&self, id: SessionId, answer: PermissionAnswer) -> Result<(), Refusal> {
        let session = self.get(id)?;
        let engine_id = session.lock().inputs.questions.engine_id(&answer.request_id);
        let request_id = engine_id.ok_or_else(|| {
            Refusal::Invalid(format!("nobody asks {} any more", answer.request_id))
        })?;
        session.live()?.permit(PermissionAnswer { request_id, ..answer })
    }

    /// The session whose agent asked the open question with this id for clients, if there is one.
    pub fn asker(&self, request_id: &str) -> Option<SessionId> {
        let asks = |session: &&Arc<Session>| {
            session.lock().inputs.questions.engine_id(request_id).is_some()
        };
        self.all().iter().find(asks).map(|session| session.id)
    }

    /// Notes the size of a client's window, and whether the window is visible.
    pub fn resize(
        &self,
        id: SessionId,
        client: ClientId,
        cols: u16,
        rows: u16,
        visible: bool,
    ) -> Result<(), Refusal> {
        let (session, now, size) = (self.get(id)?, now(), (cols, rows));
        session.change_windows(now, |state| state.viewers.resize(client, size, visible, now))
    }

    /// Gives the terminal the size of this client's window.
    pub fn take_control(&self, id: SessionId, client: ClientId) -> Result<(), Refusal> {
        let (session, now) = (self.get(id)?, now());
        session.change_windows(now, |state| state.viewers.take_control(client, now))
    }

    /// Forgets the windows of a client that has gone, in all sessions.
    pub fn client_gone(&self, client: ClientId) {
        let now = now();
        for session in self.all() {
            session.change_windows(now, |state| state.viewers.client_gone(client, now));
        }
    }
}
