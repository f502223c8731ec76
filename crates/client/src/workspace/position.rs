//! The position of a client in a session, as a pure state machine: frames of the server in, views to
//! show out. Each view comes exactly once, over any number of connections.

use bytes::Bytes;
use protocol::workspace::{
    AgentEvent, ClientMessage, Notice, OutputFrame, ServerMessage, SessionId, SessionInfo,
    SessionSnapshot, SessionStatus,
    client::{
        AgentEventMessage, Attach, InputAck, PermissionRequest, PermissionResolved, SessionHistory,
        TerminalSize, TurnEvents, Usage, connection::OUTPUT_BACKPRESSURE,
    },
};

use super::{connection::ServerFrame, joined_events::JoinedEvents};

/// A part of a session to show.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionView {
    /// The session's screen, which replaces everything shown before. For an agent: its newest lines.
    Screen(SessionSnapshot),
    /// Output that follows the output shown before.
    Output(Bytes),
    /// An event of an agent, read from its output.
    Event(AgentEvent),
    /// Events of an agent that happened while this client got none, or not all of them.
    Turns(TurnEvents),
    /// An agent requests permission for a tool.
    Permission(PermissionRequest),
    /// A request for permission is no longer open.
    Resolved(PermissionResolved),
    /// The usage of a turn.
    Used(Usage),
    /// The server has accepted a prompt of this client.
    Taken {
        /// The number of the prompt's turn, where the server reports it.
        turn: Option<u64>,
    },
    /// The session's terminal has another size.
    Size(TerminalSize),
    /// The session's properties have changed.
    Status(Box<SessionInfo>),
    /// A notice for the user.
    Notice(Notice),
    /// The server has refused a request, for this reason.
    Refused(String),
    /// The connection is lost, for this reason; the client tries to connect again.
    Lost(String),
    /// The client is connected again.
    Back,
    /// The session has ended. No view follows.
    Ended(Ending),
}

/// The end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The session's process has ended.
    Exited {
        /// The exit code, if known; 128 and above mean signals.
        code: Option<i32>,
    },
    /// The session was killed, or the server no longer knows it.
    Killed,
}

/// The meaning of a frame for a follower of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Show this view.
    Show(SessionView),
    /// The server has acknowledged an input.
    Acknowledged(InputAck),
    /// Attach again: the server has stopped sending output, since this client was too slow.
    Attach,
    /// The process has ended; some of its output may still be on its way.
    Exited {
        /// The exit code, if known.
        code: Option<i32>,
        /// The number of the last output, if known.
        last_seq: Option<u64>,
    },
    /// Nothing to do: the frame does not matter here, or was shown already.
    Nothing,
}

/// The position of a client in one session.
#[derive(Debug)]
pub struct SessionPosition {
    session: SessionId,
    is_agent: bool,
    /// The newest output that was shown.
    last: Option<u64>,
    /// Whether that output came as output and not within a screen, so that its events follow it; and the
    /// number of its events that were shown.
    last_has_events: bool,
    events: usize,
    /// The number of its events that come a second time, and are passed over.
    repeats_left: usize,
    /// The newest turn whose usage was shown.
    used: u64,
    /// Whether the server has confirmed on this connection where the output goes on.
    has_begun: bool,
    /// The session's newest output when this connection began: `None` until the server has sent the list
    /// of sessions, `Some(None)` if the list names no output.
    newest: Option<Option<u64>>,
    /// Whether to request the whole screen once the missed output is here.
    repaints: bool,
    /// An agent's events, if the server stores them.
    joined: Option<JoinedEvents>,
}

impl SessionPosition {
    /// The position at the beginning. Without `after_seq`, the server first sends a snapshot; otherwise
    /// it sends the output after this number. For an agent, the events count as well as the lines.
    pub fn new(session: SessionId, is_agent: bool, after_seq: Option<u64>) -> Self {
        Self {
            session,
            is_agent,
            last: after_seq,
            last_has_events: false,
            events: 0,
            repeats_left: 0,
            used: 0,
            has_begun: false,
            newest: None,
            repaints: false,
            joined: None,
        }
    }

    /// Shows the agent's events after the one of this number, those that the server has stored, too.
    /// Without this, the events before a screen are not shown.
    pub fn join_events(&mut self, after: u64) {
        self.joined = Some(JoinedEvents::after(self.session, after));
    }

    /// The session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The newest output that was shown.
    pub fn last_seq(&self) -> Option<u64> {
        self.last
    }

    /// Whether the server has confirmed on this connection where the output goes on.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The message to send first on a new connection.
    ///
    /// The events of a line come after its output, each in a message of its own. If the connection was
    /// lost between them, going on after the output would lose the other events. So the line is
    /// requested once more, and the events that were shown are passed over.
    pub fn attach(&mut self) -> ClientMessage {
        let repeats = self.is_agent && self.last_has_events;
        (self.has_begun, self.newest) = (false, None);
        self.joined.iter_mut().for_each(JoinedEvents::connected);
        self.repeats_left = if repeats { self.events } else { 0 };
        let after_seq = self.last.map(|last| if repeats { last.saturating_sub(1) } else { last });
        ClientMessage::Attach(Attach { session_id: self.session, after_seq })
    }

    /// Notes that the whole screen must be shown once more, after all output that was missed.
    pub fn repaint(&mut self) {
        self.repaints = true;
    }

    /// The request for that screen, once all output that was missed is here. Output that comes before
    /// the screen is still shown.
    pub fn repaint_due(&mut self) -> Option<ClientMessage> {
        let is_due = self.repaints && self.has_begun && self.last >= self.newest?;
        self.repaints &= !is_due;
        let session_id = self.session;
        is_due.then_some(ClientMessage::Attach(Attach { session_id, after_seq: None }))
    }

    /// The request for an agent's stored events, if it is due.
    pub fn turns_due(&mut self) -> Option<ClientMessage> {
        self.joined.as_mut().filter(|_| self.has_begun)?.due()
    }

    /// The joined events that can be shown after the frame that was taken last.
    pub fn joined(&mut self) -> Vec<SessionView> {
        self.joined.as_mut().map(JoinedEvents::ready).unwrap_or_default()
    }

    /// The joined events that can be shown at the session's end.
    pub fn joined_at_end(&mut self) -> Vec<SessionView> {
        self.joined.iter_mut().for_each(JoinedEvents::end);
        self.joined()
    }

    /// Takes the next frame of the server, and returns its meaning.
    pub fn take(&mut self, frame: ServerFrame) -> Step {
        match frame {
            ServerFrame::Output(output) => self.output(output),
            ServerFrame::Message(message) => self.message(*message),
        }
    }

    fn output(&mut self, output: OutputFrame) -> Step {
        let is_new = self.last.is_none_or(|last| output.seq > last);
        // Before the server has confirmed the position, output may be of an earlier request to attach.
        if output.session_id != self.session || !self.has_begun || !is_new {
            return Step::Nothing;
        }
        (self.last, self.last_has_events) = (Some(output.seq), true);
        (self.events, self.repeats_left) = (0, 0);
        Step::Show(SessionView::Output(output.data))
    }

    fn message(&mut self, message: ServerMessage) -> Step {
        let ours = self.session;
        match message {
            ServerMessage::SessionHistory(it) if it.session_id == ours => self.begin(it),
            ServerMessage::SessionSnapshot(it) if it.session_id == ours => self.screen(it),
            ServerMessage::AgentEvent(it) if it.session_id == ours => self.event(it),
            ServerMessage::PermissionRequest(it) if it.session_id == ours => {
                Step::Show(SessionView::Permission(it))
            }
            ServerMessage::PermissionResolved(it) if it.session_id == ours => {
                Step::Show(SessionView::Resolved(it))
            }
            ServerMessage::Usage(it) if it.session_id == ours => self.usage(it),
            ServerMessage::TerminalSize(it) if it.session_id == ours => {
                Step::Show(SessionView::Size(it))
            }
            ServerMessage::InputAck(ack) => Step::Acknowledged(ack),
            ServerMessage::ClientNotice(it) => self.notice(it.notice),
            ServerMessage::SessionStatusChanged(it) if it.session.id == ours => status(it.session),
            ServerMessage::SessionList(list) => {
                let found = list.sessions.into_iter().find(|session| session.id == ours);
                self.newest = found.as_ref().map(|session| session.last_seq);
                // A session that has ended by itself stays in the list, so one that is missing was killed.
                found.map_or(Step::Show(SessionView::Ended(Ending::Killed)), |it| {
                    status(Box::new(it))
                })
            }
            ServerMessage::SessionKilled(it) | ServerMessage::SessionUnknown(it)
                if it.session_id == ours =>
            {
                Step::Show(SessionView::Ended(Ending::Killed))
            }
            ServerMessage::Turns(turns) if turns.session_id == ours => {
                if let Some(joined) = &mut self.joined {
                    joined.stored(turns);
                }
                Step::Nothing
            }
            ServerMessage::Error(error) => self.refused(error.message),
            _ => Step::Nothing,
        }
    }

    /// Takes a refusal. It does not name its request, which may have been one for stored events.
    fn refused(&mut self, words: String) -> Step {
        self.joined.iter_mut().for_each(JoinedEvents::refused);
        Step::Show(SessionView::Refused(words))
    }

    fn begin(&mut self, history: SessionHistory) -> Step {
        self.has_begun = true;
        match history.snapshot {
            Some(snapshot) => self.screen(snapshot),
            None if self.last.is_none() => {
                self.last = Some(history.last_seq);
                Step::Nothing
            }
            None => Step::Nothing,
        }
    }

    fn screen(&mut self, snapshot: SessionSnapshot) -> Step {
        (self.last, self.last_has_events) = (Some(snapshot.seq), false);
        (self.events, self.repeats_left, self.repaints) = (0, 0, false);
        self.joined.iter_mut().for_each(JoinedEvents::skipped);
        Step::Show(SessionView::Screen(snapshot))
    }

    fn event(&mut self, event: AgentEventMessage) -> Step {
        if self.last != Some(event.seq) {
            return Step::Nothing;
        }
        if self.repeats_left > 0 {
            self.repeats_left -= 1;
            return Step::Nothing;
        }
        self.events += 1;
        match (&mut self.joined, event.number) {
            (Some(joined), Some(number)) => joined.live(number, event.event),
            _ => return Step::Show(SessionView::Event(event.event)),
        }
        Step::Nothing
    }

    fn usage(&mut self, usage: Usage) -> Step {
        if usage.turn <= self.used {
            return Step::Nothing;
        }
        self.used = usage.turn;
        Step::Show(SessionView::Used(usage))
    }

    fn notice(&mut self, notice: Notice) -> Step {
        match notice.session_id {
            Some(session) if session != self.session => Step::Nothing,
            // The server has dropped the stream, because this client read it too slowly.
            Some(_) if notice.code == OUTPUT_BACKPRESSURE => Step::Attach,
            _ => Step::Show(SessionView::Notice(notice)),
        }
    }
}

fn status(session: Box<SessionInfo>) -> Step {
    match session.status {
        SessionStatus::Exited => {
            Step::Exited { code: session.exit_code, last_seq: session.last_seq }
        }
        _ => Step::Show(SessionView::Status(session)),
    }
}
