//! How far a client has come in a session, without a socket: messages in, what is to be shown out, each
//! once, over any number of connections.

use bytes::Bytes;
use protocol::workspace::{
    AgentEvent, ClientMessage, Notice, OutputFrame, ServerMessage, SessionId, SessionInfo,
    SessionSnapshot, SessionStatus,
    client::{
        AgentEventMessage, Attach, InputAck, PermissionRequest, PermissionResolved, SessionHistory,
        TerminalSize, Usage, connection::OUTPUT_BACKPRESSURE,
    },
};

use super::connection::ServerFrame;

/// What is to be shown of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionView {
    /// Its screen, in place of all that was shown before. For an agent: its newest lines.
    Screen(SessionSnapshot),
    /// Output that follows what was shown.
    Output(Bytes),
    /// What an agent's output means.
    Event(AgentEvent),
    /// An agent requests permission for a tool.
    Permission(PermissionRequest),
    /// That question is no longer open.
    Resolved(PermissionResolved),
    /// What a turn used.
    Used(Usage),
    /// A prompt of this client was taken.
    Taken {
        /// Which turn it is, or will be, where the server says so.
        turn: Option<u64>,
    },
    /// Its terminal has another size.
    Size(TerminalSize),
    /// It is not as it was.
    Status(Box<SessionInfo>),
    /// Something the user should know.
    Notice(Notice),
    /// The server has not done what it was told; in its words.
    Refused(String),
    /// The connection is lost, and another is tried for; in words.
    Lost(String),
    /// There is a connection again.
    Back,
    /// Nothing follows.
    Ended(Ending),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its process has ended.
    Exited {
        /// With this exit code, if known; 128 and above mean signals.
        code: Option<i32>,
    },
    /// Somebody has killed it, or it is not known any more.
    Killed,
}

/// What a message means for a follower of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It is to be shown.
    Show(SessionView),
    /// It is an input's acknowledgement.
    Acknowledged(InputAck),
    /// The server sends nothing any more until it is asked to again.
    Attach,
    /// The process has ended; what it wrote may still be on its way.
    Exited {
        /// With this exit code, if known.
        code: Option<i32>,
        /// The number of its last output, if known.
        last_seq: Option<u64>,
    },
    /// Nothing that matters here, or what was shown already.
    Nothing,
}

/// A place in one session.
#[derive(Debug)]
pub struct SessionPosition {
    session: SessionId,
    is_agent: bool,
    /// The newest output that was shown.
    last: Option<u64>,
    /// Whether that came as output of its own, and how many events of it were shown.
    last_has_events: bool,
    events: usize,
    /// So many events of it come again.
    again: usize,
    /// The newest turn whose use was shown.
    used: u64,
    /// Whether this connection has said where output goes on.
    has_begun: bool,
    /// The session's newest output when this connection asked; within, if that is known.
    newest: Option<Option<u64>>,
    /// Whether the whole screen is to be asked for.
    repaints: bool,
}

impl SessionPosition {
    /// The beginning: first comes a snapshot, or the output that follows a given number. For an agent
    /// the events count, not just the lines.
    pub fn new(session: SessionId, is_agent: bool, after_seq: Option<u64>) -> Self {
        Self {
            session,
            is_agent,
            last: after_seq,
            last_has_events: false,
            events: 0,
            again: 0,
            used: 0,
            has_begun: false,
            newest: None,
            repaints: false,
        }
    }

    /// Which session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The newest output that was shown.
    pub fn last_seq(&self) -> Option<u64> {
        self.last
    }

    /// Whether this connection has said where output goes on.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// What to send on a new connection.
    ///
    /// A line's events come after its output, each in a message of its own. Were they cut off in
    /// between, going on after the output would lose the rest: so that line is asked for once more,
    /// and what was shown of it is passed over.
    pub fn attach(&mut self) -> ClientMessage {
        let repeats = self.is_agent && self.last_has_events;
        (self.has_begun, self.newest) = (false, None);
        self.again = if repeats { self.events } else { 0 };
        let after_seq = self.last.map(|last| if repeats { last.saturating_sub(1) } else { last });
        ClientMessage::Attach(Attach { session_id: self.session, after_seq })
    }

    /// The whole screen is to be shown once more, when all output that was missed is here.
    pub fn repaint(&mut self) {
        self.repaints = true;
    }

    /// What to send for that, once it is time. Output before the screen still counts.
    pub fn repaint_due(&mut self) -> Option<ClientMessage> {
        let is_due = self.repaints && self.has_begun && self.last >= self.newest?;
        self.repaints &= !is_due;
        let session_id = self.session;
        is_due.then_some(ClientMessage::Attach(Attach { session_id, after_seq: None }))
    }

    /// What something that the server said means.
    pub fn take(&mut self, frame: ServerFrame) -> Step {
        match frame {
            ServerFrame::Output(output) => self.output(output),
            ServerFrame::Message(message) => self.message(*message),
        }
    }

    fn output(&mut self, output: OutputFrame) -> Step {
        let is_new = self.last.is_none_or(|last| output.seq > last);
        if output.session_id != self.session || !self.has_begun || !is_new {
            return Step::Nothing;
        }
        (self.last, self.last_has_events) = (Some(output.seq), true);
        (self.events, self.again) = (0, 0);
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
                found.map_or(Step::Show(SessionView::Ended(Ending::Killed)), |it| {
                    status(Box::new(it))
                })
            }
            ServerMessage::SessionKilled(it) | ServerMessage::SessionUnknown(it)
                if it.session_id == ours =>
            {
                Step::Show(SessionView::Ended(Ending::Killed))
            }
            ServerMessage::Error(error) => Step::Show(SessionView::Refused(error.message)),
            _ => Step::Nothing,
        }
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
        (self.events, self.again, self.repaints) = (0, 0, false);
        Step::Show(SessionView::Screen(snapshot))
    }

    fn event(&mut self, event: AgentEventMessage) -> Step {
        if self.last != Some(event.seq) {
            return Step::Nothing;
        }
        if self.again > 0 {
            self.again -= 1;
            return Step::Nothing;
        }
        self.events += 1;
        Step::Show(SessionView::Event(event.event))
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
