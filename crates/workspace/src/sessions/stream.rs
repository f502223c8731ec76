//! The next message for each viewer of a session.

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
use session::terminal::{
    log::Chunk,
    viewer::{Step, ViewerId},
};

use super::{
    Streamed,
    asides::Asides,
    questions::Questions,
    session::{Session, SessionState},
    viewers::Watching,
};
use crate::refusal::Refusal;

/// The size of an agent's snapshot, in bytes: as many of its newest lines as fit.
const LINES: usize = 256 * 1024;

/// The next step for a viewer.
pub(super) enum Turn {
    /// Send these items.
    Send(Vec<Streamed>),
    /// Send these items; nothing follows.
    End(Vec<Streamed>),
    /// Make a snapshot for the viewer.
    Paint(Behind),
    /// Read the output from the disk first.
    Load,
    /// Wait until the session has something new.
    Wait,
}

/// A viewer's need for a snapshot, with the reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct Behind {
    id: ViewerId,
    why: Why,
}

#[derive(Debug, Clone, Copy)]
enum Why {
    /// The viewer has just attached.
    First,
    /// The viewer was too slow; this many chunks were skipped.
    Lagged { skipped_chunks: u64 },
    /// The terminal's size is not the one that the viewer assumes. Terminals break long lines
    /// differently at another size, so the viewer gets the whole screen again.
    Resized,
}

impl Session {
    /// The next step for a viewer that has room.
    pub(super) fn turn(&self, id: ViewerId, now: Instant) -> Turn {
        let mut state = self.lock();
        let SessionState { viewers, output, asides, questions, windows, is_gone, .. } = &mut *state;
        let Some(watching) = viewers.get(id).filter(|_| !*is_gone) else {
            return Turn::End(Vec::new());
        };
        if output.is_napping() {
            return Turn::Load;
        }
        let mut sent = watching.due(asides);
        if sent.is_empty() && self.is_terminal && watching.wants_size(windows, &output.log) {
            return Turn::Paint(Behind { id, why: Why::Resized });
        }
        match watching.viewer(&output.log, now).next(&output.log, true, now) {
            Step::Resumed { after } => {
                sent.push(history(self.id, after, None));
                watching.begin(asides.first_after(after));
                sent.extend(watching.asked(asides, questions));
                if self.is_terminal && watching.shown.is_none() {
                    let (cols, rows) = windows.cells();
                    watching.shown = Some((cols, rows));
                    sent.push(sized(self.id, cols, rows));
                }
            }
            Step::Frames(chunks) => sent.extend(frames(self.id, chunks, watching, asides)),
            // The messages in `sent` go first. The viewer repeats this step at the next call.
            Step::Resync { .. } if !sent.is_empty() => {}
            Step::Resync { skipped_chunks, first } => {
                let why = if first { Why::First } else { Why::Lagged { skipped_chunks } };
                return Turn::Paint(Behind { id, why });
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

    /// Makes a snapshot for a viewer, and returns the items to send.
    pub(super) async fn paint(self: &Arc<Self>, behind: Behind) -> Result<Vec<Streamed>, Refusal> {
        let snapshot = match self.is_terminal {
            true => self.screen_soon().await?,
            false => self.lines_now().await?,
        };
        Ok(self.painted(behind, snapshot))
    }

    /// The current screen.
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

    /// The newest whole lines.
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
        let SessionState { viewers, output, asides, questions, .. } = &mut *state;
        let Some(watching) = viewers.get(behind.id) else { return Vec::new() };
        let (place, cols, rows) = (watching.place(), snapshot.cols, snapshot.rows);
        watching.resynced(seq);
        watching.shown = Some((cols, rows));
        let skipped_chunks = match (behind.why, output.log.after(place)) {
            (Why::First, _) => {
                watching.begin(asides.first_after(seq));
                let open = watching.asked(asides, questions);
                return std::iter::once(history(self.id, seq, Some(snapshot)))
                    .chain(open)
                    .collect();
            }
            (Why::Resized, Ok(chunks)) => {
                // The viewer is not behind, so it also gets the output before the snapshot.
                let chunks = chunks.take_while(|chunk| chunk.seq <= seq);
                let before = frames(self.id, chunks, watching, asides);
                let now = [sized(self.id, cols, rows), snapshot.into()];
                return before.into_iter().chain(now).collect();
            }
            (Why::Resized, Err(_)) => seq.saturating_sub(place),
            (Why::Lagged { skipped_chunks }, _) => skipped_chunks,
        };
        self.commons.resyncs.fetch_add(1, Ordering::Relaxed);
        let missed = watching.asides_up_to(asides, seq).into_iter().filter(is_no_event);
        let first = [lagged(self.id, skipped_chunks), snapshot.into()];
        first.into_iter().chain(missed).collect()
    }
}

impl Watching {
    /// Marks the history as sent. The viewer gets every aside since it attached, even those that
    /// belong to output before its position: it may have sent the prompt that caused them.
    fn begin(&mut self, aside: u64) {
        (self.has_begun, self.aside) = (true, aside.min(self.aside));
    }

    /// The open questions, except those that the viewer will still get as asides.
    fn asked(&self, asides: &Asides, questions: &Questions) -> Vec<Streamed> {
        let open = questions.open().filter(|asked| !asides.ask(self.aside, asked.request_id));
        open.map(|asked| ServerMessage::PermissionRequest(asked).into()).collect()
    }

    /// The asides that are due before any further output.
    fn due(&mut self, asides: &Asides) -> Vec<Streamed> {
        if self.has_begun { self.asides_up_to(asides, self.place()) } else { Vec::new() }
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

/// Chunks as binary frames, each followed by its asides.
fn frames(
    session: SessionId,
    chunks: impl Iterator<Item = Chunk>,
    watching: &mut Watching,
    asides: &Asides,
) -> Vec<Streamed> {
    let mut sent = Vec::new();
    for Chunk { seq, text } in chunks {
        sent.push(Streamed::Output(frame::encode(session, seq, &text)));
        sent.extend(watching.asides_up_to(asides, seq));
    }
    sent
}

fn sized(session_id: SessionId, cols: u16, rows: u16) -> Streamed {
    ServerMessage::TerminalSize(TerminalSize { session_id, cols, rows }).into()
}

fn history(session_id: SessionId, last_seq: u64, snapshot: Option<SessionSnapshot>) -> Streamed {
    ServerMessage::SessionHistory(SessionHistory { session_id, last_seq, snapshot }).into()
}

/// Whether the item is anything but an agent's event. A client that missed lines does not need
/// their events.
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
