//! What each of those who look at a session is to be sent next.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use protocol::workspace::{
    ServerMessage, SessionId,
    client::{
        ClientNotice, Notice, NoticeLevel, SessionHistory, SessionSnapshot, TerminalSize,
        connection::{OUTPUT_BACKPRESSURE, OUTPUT_LAGGED},
    },
    frame,
};
use session::viewer::{Step, ViewerId};

use super::{
    Streamed,
    asides::Asides,
    session::{Session, State},
    viewers::Watching,
};
use crate::refusal::Refusal;

/// So much of an agent's newest lines is its snapshot, in bytes.
const LINES: usize = 256 * 1024;

/// What is to be done for one who looks.
pub(super) enum Turn {
    /// To be sent.
    Send(Vec<Streamed>),
    /// To be sent, and nothing after it.
    End(Vec<Streamed>),
    /// A snapshot is wanted.
    Paint(Behind),
    /// The output has to be read from the disk first.
    Load,
    /// Nothing, until there is news.
    Wait,
}

/// Who needs a snapshot, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    id: ViewerId,
    first: bool,
    skipped_chunks: u64,
}

impl Session {
    /// What is to be done for a viewer now, which has room.
    pub(super) fn turn(&self, id: ViewerId, now: Instant) -> Turn {
        let mut state = self.lock();
        let size = self.size_message(&state);
        let State { viewers, output, asides, questions, is_gone, .. } = &mut *state;
        let Some(watching) = viewers.get(id).filter(|_| !*is_gone) else {
            return Turn::End(Vec::new());
        };
        if output.is_napping() {
            return Turn::Load;
        }
        let mut sent = watching.due(asides, size);
        match watching.viewer(&output.log, now).next(&output.log, true, now) {
            Step::Resumed { after } => {
                sent.push(history(self.id, after, None));
                sent.extend(questions.open().map(|it| ServerMessage::PermissionRequest(it).into()));
                watching.begin(asides.first_after(after));
            }
            Step::Frames(chunks) => {
                for chunk in chunks {
                    sent.push(Streamed::Output(frame::encode(self.id, chunk.seq, &chunk.text)));
                    sent.extend(watching.asides_up_to(asides, chunk.seq));
                }
            }
            Step::Resync { .. } if !sent.is_empty() => {}
            Step::Resync { skipped_chunks, first } => {
                return Turn::Paint(Behind { id, first, skipped_chunks });
            }
            Step::Wait if sent.is_empty() => return Turn::Wait,
            Step::Wait => {}
            Step::Dropped => {
                sent.push(dropped(self.id));
                return Turn::End(sent);
            }
        }
        Turn::Send(sent)
    }

    /// Makes a snapshot for a viewer that needs one, and says what it is to be sent.
    pub(super) async fn paint(self: &Arc<Self>, behind: Behind) -> Result<Vec<Streamed>, Refusal> {
        let snapshot = if self.is_terminal { self.screen_now() } else { self.lines_now().await? };
        Ok(self.painted(behind, snapshot))
    }

    /// The terminal as it is now.
    pub(super) fn screen_now(&self) -> SessionSnapshot {
        let mut painter = self.painter();
        let seq = self.feed(&mut painter);
        let (size, data) = painter.snapshot();
        let mut state = self.lock();
        let output = &mut state.output;
        if painter.drop_if_little(&output.log) {
            output.unpainted += output.log.size();
            output.has_screen = false;
        }
        SessionSnapshot { session_id: self.id, seq, cols: size.cols, rows: size.rows, data }
    }

    /// The newest lines, whole ones.
    async fn lines_now(self: &Arc<Self>) -> Result<SessionSnapshot, Refusal> {
        let (seq, size) = {
            let state = self.lock();
            (state.output.log.last_seq(), state.windows.size())
        };
        let past = self.past(seq + 1, LINES).await?;
        let mut data = past.text();
        if past.more
            && let Some(end) = data.find('\n')
        {
            data.drain(..=end);
        }
        Ok(SessionSnapshot { session_id: self.id, seq, cols: size.cols(), rows: size.rows(), data })
    }

    fn painted(&self, behind: Behind, snapshot: SessionSnapshot) -> Vec<Streamed> {
        let seq = snapshot.seq;
        let mut state = self.lock();
        let State { viewers, asides, questions, windows, .. } = &mut *state;
        let Some(watching) = viewers.get(behind.id) else { return Vec::new() };
        watching.resynced(seq);
        watching.tell_size = windows.is_news_for(watching.client);
        if behind.first {
            watching.begin(asides.first_after(seq));
            let open = questions.open().map(|it| ServerMessage::PermissionRequest(it).into());
            return std::iter::once(history(self.id, seq, Some(snapshot))).chain(open).collect();
        }
        self.commons.resyncs.fetch_add(1, Ordering::Relaxed);
        let missed = watching.asides_up_to(asides, seq).into_iter().filter(is_no_event);
        let first = [lagged(self.id, behind.skipped_chunks), snapshot.into()];
        first.into_iter().chain(missed).collect()
    }

    fn size_message(&self, state: &State) -> TerminalSize {
        let size = state.windows.size();
        TerminalSize { session_id: self.id, cols: size.cols(), rows: size.rows() }
    }
}

impl Watching {
    fn begin(&mut self, aside: u64) {
        (self.has_begun, self.aside) = (true, aside);
    }

    /// What it is to be sent before any output.
    fn due(&mut self, asides: &Asides, size: TerminalSize) -> Vec<Streamed> {
        if !self.has_begun {
            return Vec::new();
        }
        let mut due = self.asides_up_to(asides, self.place());
        if std::mem::take(&mut self.tell_size) {
            due.push(ServerMessage::TerminalSize(size).into());
        }
        due
    }

    fn asides_up_to(&mut self, asides: &Asides, seq: u64) -> Vec<Streamed> {
        let (messages, end) = asides.up_to(self.aside, seq);
        self.aside = end;
        messages.into_iter().map(Streamed::from).collect()
    }
}

impl From<ServerMessage> for Streamed {
    fn from(message: ServerMessage) -> Self {
        Self::Message(message)
    }
}

impl From<SessionSnapshot> for Streamed {
    fn from(snapshot: SessionSnapshot) -> Self {
        Self::Message(ServerMessage::SessionSnapshot(snapshot))
    }
}

fn history(session_id: SessionId, last_seq: u64, snapshot: Option<SessionSnapshot>) -> Streamed {
    ServerMessage::SessionHistory(SessionHistory { session_id, last_seq, snapshot }).into()
}

/// Whether it is something else than what lines mean: whoever missed the lines needs that no more.
fn is_no_event(streamed: &Streamed) -> bool {
    !matches!(streamed, Streamed::Message(ServerMessage::AgentEvent(_)))
}

fn lagged(session: SessionId, skipped_chunks: u64) -> Streamed {
    let message = "This client is falling behind on live session output.";
    let detail = format!("Warren left out {skipped_chunks} chunks of output; a snapshot follows.");
    notice(session, OUTPUT_LAGGED, message, detail)
}

fn dropped(session: SessionId) -> Streamed {
    let message = "This client could not keep up with the session's output.";
    let detail = "Warren sends it no more of it; attach again to go on.".to_owned();
    notice(session, OUTPUT_BACKPRESSURE, message, detail)
}

fn notice(session: SessionId, code: &str, message: &str, detail: String) -> Streamed {
    let notice = Notice {
        level: NoticeLevel::Warning,
        code: code.to_owned(),
        message: message.to_owned(),
        detail: Some(detail),
        session_id: Some(session),
    };
    ServerMessage::ClientNotice(ClientNotice { notice }).into()
}
