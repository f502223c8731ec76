//! The next message for each viewer of a session.

use std::time::Instant;

use bytes::Bytes;
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

use super::{AttachedViewers, ViewerStream};
use crate::sessions::{
    client_inputs::questions::Questions,
    output::{Output, asides::Asides},
};

/// An item of a stream.
#[derive(Debug)]
pub enum StreamItem {
    /// A message of the protocol, to be sent as JSON.
    Message(ServerMessage),
    /// A binary frame, complete: header and payload.
    Output(Bytes),
}

/// The next step for a viewer.
pub(crate) enum StreamStep {
    /// Send these items.
    Send(Vec<StreamItem>),
    /// Send these items; nothing follows.
    End(Vec<StreamItem>),
    /// Make a snapshot for the viewer.
    Paint(SnapshotNeed),
    /// Read the output from the disk first.
    Load,
    /// Wait until the session has something new.
    Wait,
}

/// A viewer's need for a snapshot, with the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotNeed {
    viewer: ViewerId,
    reason: Reason,
}

impl SnapshotNeed {
    pub(crate) const fn viewer(self) -> ViewerId {
        self.viewer
    }
}

#[derive(Debug, Clone, Copy)]
enum Reason {
    /// The viewer has just attached.
    First,
    /// The viewer was too slow; this many chunks were skipped.
    Lagged { skipped_chunks: u64 },
    /// The terminal's size is not the one that the viewer assumes. Terminals break long lines
    /// differently at another size, so the viewer gets the whole screen again.
    Resized,
}

/// The contents of a session, as its viewers see them.
pub(crate) struct Contents<'a> {
    pub(crate) session: SessionId,
    /// Whether the output is that of a terminal; otherwise it is lines of text.
    pub(crate) is_terminal: bool,
    pub(crate) output: &'a Output,
    pub(crate) questions: &'a Questions,
}

/// A viewer's items with a snapshot.
pub(crate) struct SnapshotItems {
    pub(crate) items: Vec<StreamItem>,
    /// Whether the viewer missed output.
    pub(crate) has_lagged: bool,
}

impl AttachedViewers {
    /// The next step for a viewer that has room.
    pub(crate) fn step(
        &mut self,
        id: ViewerId,
        contents: &Contents<'_>,
        now: Instant,
    ) -> StreamStep {
        let Contents { session, is_terminal, output, .. } = *contents;
        let Some(stream) = self.all.get_mut(&id) else { return StreamStep::End(Vec::new()) };
        if output.is_unloaded() {
            return StreamStep::Load;
        }
        let (log, asides) = (output.log(), output.asides());
        let mut sent = stream.due(asides);
        if sent.is_empty() && is_terminal && stream.take_resize(&self.windows, log) {
            return StreamStep::Paint(SnapshotNeed { viewer: id, reason: Reason::Resized });
        }
        match stream.viewer(log, now).next(log, true, now) {
            Step::Resumed { after } => {
                sent.extend(stream.resume(after, contents, self.windows.cells()));
            }
            Step::Frames(chunks) => sent.extend(frames(session, chunks, stream, asides)),
            // The messages in `sent` go first. The viewer repeats this step at the next call.
            Step::Resync { .. } if !sent.is_empty() => {}
            Step::Resync { skipped_chunks, first } => {
                let reason = if first { Reason::First } else { Reason::Lagged { skipped_chunks } };
                return StreamStep::Paint(SnapshotNeed { viewer: id, reason });
            }
            Step::Wait if sent.is_empty() => return StreamStep::Wait,
            Step::Wait => {}
            Step::Dropped => {
                sent.push(dropped(session));
                return StreamStep::End(sent);
            }
        }
        StreamStep::Send(sent)
    }

    /// The items for a viewer whose snapshot is made.
    pub(crate) fn resynced(
        &mut self,
        need: SnapshotNeed,
        snapshot: SessionSnapshot,
        contents: &Contents<'_>,
    ) -> SnapshotItems {
        let Contents { session, output, questions, .. } = *contents;
        let Some(stream) = self.all.get_mut(&need.viewer) else {
            return SnapshotItems::on_time([]);
        };
        let asides = output.asides();
        let (seq, cols, rows) = (snapshot.seq, snapshot.cols, snapshot.rows);
        let position = stream.position();
        stream.resynced(seq);
        stream.shown = Some((cols, rows));
        let skipped_chunks = match (need.reason, output.log().after(position)) {
            (Reason::First, _) => {
                stream.begin(asides.first_after(seq));
                let open = stream.open_questions(asides, questions);
                let first = history(session, seq, Some(snapshot));
                return SnapshotItems::on_time(std::iter::once(first).chain(open));
            }
            (Reason::Resized, Ok(chunks)) => {
                // The viewer is not behind, so it also gets the output before the snapshot.
                let chunks = chunks.take_while(|chunk| chunk.seq <= seq);
                let before = frames(session, chunks, stream, asides);
                let now = [sized(session, cols, rows), snapshot.into()];
                return SnapshotItems::on_time(before.into_iter().chain(now));
            }
            (Reason::Resized, Err(_)) => seq.saturating_sub(position),
            (Reason::Lagged { skipped_chunks }, _) => skipped_chunks,
        };
        let missed = stream.asides_up_to(asides, seq).into_iter().filter(is_no_event);
        let first = [lagged(session, skipped_chunks), snapshot.into()];
        SnapshotItems { items: first.into_iter().chain(missed).collect(), has_lagged: true }
    }
}

impl SnapshotItems {
    fn on_time(items: impl IntoIterator<Item = StreamItem>) -> Self {
        Self { items: items.into_iter().collect(), has_lagged: false }
    }
}

impl ViewerStream {
    /// Marks the history as sent. The viewer gets every aside since it attached, even those that
    /// belong to output before its position: it may have sent the prompt that caused them.
    fn begin(&mut self, aside: u64) {
        (self.has_begun, self.aside) = (true, aside.min(self.aside));
    }

    /// The first items of a viewer that has the output up to the number `after` already.
    fn resume(
        &mut self,
        after: u64,
        contents: &Contents<'_>,
        (cols, rows): (u16, u16),
    ) -> Vec<StreamItem> {
        let Contents { session, is_terminal, output, questions } = *contents;
        let mut items = vec![history(session, after, None)];
        self.begin(output.asides().first_after(after));
        items.extend(self.open_questions(output.asides(), questions));
        if is_terminal && self.shown.is_none() {
            self.shown = Some((cols, rows));
            items.push(sized(session, cols, rows));
        }
        items
    }

    /// The open questions, except those that the viewer will still get as asides.
    fn open_questions(&self, asides: &Asides, questions: &Questions) -> Vec<StreamItem> {
        let open = questions
            .open()
            .filter(|question| !asides.has_question(self.aside, question.request_id));
        open.map(|question| ServerMessage::PermissionRequest(question).into()).collect()
    }

    /// The asides that are due before any further output.
    fn due(&mut self, asides: &Asides) -> Vec<StreamItem> {
        if self.has_begun { self.asides_up_to(asides, self.position()) } else { Vec::new() }
    }

    fn asides_up_to(&mut self, asides: &Asides, seq: u64) -> Vec<StreamItem> {
        let (messages, end) = asides.up_to(self.aside, seq);
        self.aside = end;
        messages.into_iter().map(StreamItem::from).collect()
    }
}

impl From<ServerMessage> for StreamItem {
    fn from(message: ServerMessage) -> Self {
        Self::Message(message)
    }
}

impl From<SessionSnapshot> for StreamItem {
    fn from(snapshot: SessionSnapshot) -> Self {
        Self::Message(ServerMessage::SessionSnapshot(snapshot))
    }
}

/// Chunks as binary frames, each followed by its asides.
fn frames(
    session: SessionId,
    chunks: impl Iterator<Item = Chunk>,
    stream: &mut ViewerStream,
    asides: &Asides,
) -> Vec<StreamItem> {
    let mut sent = Vec::new();
    for Chunk { seq, text } in chunks {
        sent.push(StreamItem::Output(frame::encode(session, seq, &text)));
        sent.extend(stream.asides_up_to(asides, seq));
    }
    sent
}

fn sized(session_id: SessionId, cols: u16, rows: u16) -> StreamItem {
    ServerMessage::TerminalSize(TerminalSize { session_id, cols, rows }).into()
}

fn history(session_id: SessionId, last_seq: u64, snapshot: Option<SessionSnapshot>) -> StreamItem {
    ServerMessage::SessionHistory(SessionHistory { session_id, last_seq, snapshot }).into()
}

/// Whether the item is anything but an agent's event. A client that missed lines does not need
/// their events.
fn is_no_event(streamed: &StreamItem) -> bool {
    !matches!(streamed, StreamItem::Message(ServerMessage::AgentEvent(_)))
}

fn lagged(session: SessionId, skipped_chunks: u64) -> StreamItem {
    let message = "This client is falling behind on live session output.";
    let detail = format!("Warren left out {skipped_chunks} chunks of output; a snapshot follows.");
    notice(session, OUTPUT_LAGGED, message, detail)
}

fn dropped(session: SessionId) -> StreamItem {
    let message = "This client could not keep up with the session's output.";
    let detail = "Warren sends it no more of it; attach again to go on.".to_owned();
    notice(session, OUTPUT_BACKPRESSURE, message, detail)
}

fn notice(session: SessionId, code: &str, message: &str, detail: String) -> StreamItem {
    let notice = Notice {
        level: NoticeLevel::Warning,
        code: code.to_owned(),
        message: message.to_owned(),
        detail: Some(detail),
        session_id: Some(session),
    };
    ServerMessage::ClientNotice(ClientNotice { notice }).into()
}
