//! Follows a session over any number of connections. When a connection is lost, the client connects
//! again and goes on where it was: nothing is shown twice.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use base::Backoff;
use protocol::workspace::{
    ClientMessage, SessionId,
    client::{ListSessions, Resize},
    limits::{MAX_COLS, MAX_ROWS, MIN_COLS, MIN_ROWS},
};
use tokio::time::{Instant, sleep};
use wire::{dial::jitter, until};

use super::{
    address::Addresses,
    answer::{is_out_of_reach, is_too_late, refusal},
    connection::{ServerFrame, Workspace},
    inputs::{Inputs, unique},
    position::{Ending, SessionPosition, SessionView, Step},
};
use crate::error::ClientError;

/// After a process has ended: the silence after which its output counts as complete, if the number of
/// the last output is unknown. For an agent, also the silence after its last line: the events of that
/// line follow it in messages of their own, and their number is unknown.
const QUIET: Duration = Duration::from_millis(300);
/// After a process has ended: the silence after which missing output is given up.
const STALLED: Duration = Duration::from_secs(30);
/// A connection that lasted this long was a good one: after its loss the backoff starts from its first
/// delay.
const GOOD: Duration = Duration::from_secs(10);

/// The settings with which a session is followed.
#[derive(Debug, Clone)]
pub struct FollowerSettings {
    /// Whether the session is an agent: then its events count, beside its output.
    pub is_agent: bool,
    /// The size of the terminal that shows the session: columns, rows.
    pub size: Option<(u16, u16)>,
    /// The first and the longest delay before an attempt to connect again.
    pub backoff: (Duration, Duration),
    /// How long to try to connect again before the loss is an error.
    pub patience: Duration,
    /// Whether to begin with the session's first output, for a client that has just created it.
    /// Otherwise the session is shown from its present screen on.
    pub from_start: bool,
    /// The number of the newest event of an agent that is known already. Then all later events are
    /// shown, those that the server has stored, too. `None`: only live events are shown.
    pub events_after: Option<u64>,
}

impl Default for FollowerSettings {
    fn default() -> Self {
        Self {
            is_agent: false,
            size: None,
            backoff: (Duration::from_millis(200), Duration::from_secs(5)),
            patience: Duration::MAX,
            from_start: false,
            events_after: None,
        }
    }
}

/// A session that is followed.
pub struct Follower {
    /// The present server, or the last one, comes first.
    addresses: Addresses,
    settings: FollowerSettings,
    position: SessionPosition,
    inputs: Inputs,
    state: FollowerState,
    backoff: Backoff,
    /// The time at which the present connection was made, or the last one was lost.
    since: Instant,
    exited: Option<ProcessEnd>,
    ready: VecDeque<SessionView>,
    /// Whether the server could not attach, since it does not reach the session's machine.
    waits_for_owner: bool,
}

/// The end of the session's process.
struct ProcessEnd {
    code: Option<i32>,
    /// The number of the last output, if known.
    last_seq: Option<u64>,
    /// The time at which output last came.
    since: Instant,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Workspace, ClientError>> + Send>>;

enum FollowerState {
    Connected(Box<Workspace>),
    Connecting(Connecting),
    Over,
}

impl Follower {
    /// Follows a session from its present screen or its first output on. `workspace` is the first
    /// connection. When a connection is lost, the servers at `addresses` are tried in turn, the one that
    /// was lost first.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when this connection is lost.
    pub fn begin(
        workspace: Workspace,
        addresses: impl Into<Addresses>,
        session: SessionId,
        settings: FollowerSettings,
    ) -> Result<Self, ClientError> {
        let (first, last) = settings.backoff;
        let mut addresses = addresses.into();
        addresses.begin_with(workspace.server());
        let from = settings.from_start.then_some(0);
        let mut position = SessionPosition::new(session, settings.is_agent, from);
        if let Some(after) = settings.events_after {
            position.join_events(after);
        }
        let mut follower = Self {
            addresses,
            position,
            inputs: Inputs::new(session, unique()),
            state: FollowerState::Connected(Box::new(workspace)),
            backoff: Backoff::new(first, last),
            since: Instant::now(),
            exited: None,
            ready: VecDeque::new(),
            waits_for_owner: false,
            settings,
        };
        follower.hello()?;
        Ok(follower)
    }

    /// The next view to show; `None` after the last one. The future may be dropped at any await.
    ///
    /// # Errors
    /// When the server refuses, or cannot be reached for longer than the settings' patience.
    pub async fn next(&mut self) -> Result<Option<SessionView>, ClientError> {
        loop {
            if let Some(seen) = self.ready.pop_front() {
                return Ok(Some(seen));
            }
            let over_at = self.over_at();
            match &mut self.state {
                FollowerState::Over => return Ok(None),
                FollowerState::Connecting(connecting) => {
                    let connected = connecting.await;
                    self.connected(connected)?;
                }
                FollowerState::Connected(workspace) => {
                    let frame = tokio::select! {
                        // Output that is here comes before the time at which no more is expected.
                        biased;
                        frame = workspace.next() => frame,
                        () = until(over_at) => {
                            self.exit();
                            continue;
                        }
                    };
                    self.received(frame)?;
                }
            }
        }
    }

    /// The next view that has already arrived; `None` if there is no such view now.
    ///
    /// # Errors
    /// As [`Follower::next`].
    pub fn ready(&mut self) -> Result<Option<SessionView>, ClientError> {
        while self.ready.is_empty() {
            let FollowerState::Connected(workspace) = &mut self.state else { return Ok(None) };
            match workspace.ready() {
                Ok(None) => return Ok(None),
                frame => self.received(frame)?,
            }
        }
        Ok(self.ready.pop_front())
    }

    /// Writes the queued input and reads nothing, for a caller that cannot show more now. The future
    /// never completes; it may be dropped at any await.
    pub async fn write(&mut self) {
        if let FollowerState::Connected(workspace) = &mut self.state {
            workspace.write().await;
        }
        std::future::pending::<()>().await;
    }

    /// Whether more input is accepted now. Otherwise the bound on input that waits for the server is
    /// reached.
    pub fn has_room(&self) -> bool {
        self.inputs.has_room()
    }

    /// The number of typed bytes that have not been sent yet, since the bound on unacknowledged input is
    /// reached.
    pub fn waiting(&self) -> usize {
        self.inputs.waiting()
    }

    /// Types keys into the session. Returns `false` if too much input waits for the server already: then
    /// these keys are dropped. Without a connection they are sent once there is one again.
    pub fn type_in(&mut self, keys: &[u8]) -> bool {
        let is_taken = self.inputs.push(keys);
        self.say_inputs();
        is_taken
    }

    /// Gives the session a whole prompt. Returns `false` if too many wait for the server already: then
    /// this prompt is dropped. Without a connection it is sent once there is one again.
    /// [`SessionView::Taken`] reports that the server has accepted the prompt.
    pub fn prompt(&mut self, text: String) -> bool {
        let is_taken = self.inputs.prompt(text);
        self.say_inputs();
        is_taken
    }

    /// Requests the whole screen again ([`SessionView::Screen`]). The request is sent once all output
    /// that was missed during a loss has come, so that this output is shown, too.
    pub fn repaint(&mut self) {
        self.position.repaint();
    }

    /// Reports a new size of the terminal that shows the session.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.settings.size = Some((cols, rows));
        if let Some(message) = self.size() {
            self.say(&message);
        }
    }

    /// Sends the server a message that is not repeated on a later connection.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when there is no connection now.
    pub fn tell(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        match &mut self.state {
            FollowerState::Connected(workspace) => workspace.send(message),
            _ => Err(ClientError::Unreachable {
                url: self.addresses.first().shown().to_owned(),
                reason: "the connection is lost, and another is tried for".to_owned(),
            }),
        }
    }

    /// Stops following. Messages that are queued for the server are still written.
    pub async fn close(self) {
        if let FollowerState::Connected(workspace) = self.state {
            workspace.close().await;
        }
    }

    /// Sends the first messages of a connection. The list of sessions shows whether the session has ended
    /// meanwhile.
    fn hello(&mut self) -> Result<(), ClientError> {
        let attach = self.position.attach();
        let list = ClientMessage::ListSessions(ListSessions { include_hidden: true });
        let messages = [Some(attach), self.size(), Some(list)].into_iter().flatten();
        let messages: Vec<ClientMessage> = messages.chain(self.inputs.unacknowledged()).collect();
        messages.iter().try_for_each(|message| self.tell(message))
    }

    fn size(&self) -> Option<ClientMessage> {
        let (cols, rows) = self.settings.size?;
        // `resize` may not ask for less: the session keeps the size that it has.
        if cols < MIN_COLS || rows < MIN_ROWS {
            return None;
        }
        let (cols, rows) = (cols.min(MAX_COLS), rows.min(MAX_ROWS));
        let session_id = self.position.session();
        Some(ClientMessage::Resize(Resize { session_id, cols, rows, visible: true }))
    }

    /// Sends a message if there is a connection. A failure needs no handling here: the next read reports
    /// the loss.
    fn say(&mut self, message: &ClientMessage) {
        if let FollowerState::Connected(workspace) = &mut self.state {
            let _ = workspace.send(message);
        }
    }

    /// Sends as much of the typed input as may be unacknowledged.
    fn say_inputs(&mut self) {
        while let Some(message) = self.inputs.due() {
            self.say(&message);
        }
    }

    fn received(
        &mut self,
        frame: Result<Option<ServerFrame>, ClientError>,
    ) -> Result<(), ClientError> {
        let lost = match frame {
            Ok(Some(frame)) => return self.step(frame),
            Ok(None) => ClientError::Unreachable {
                url: self.addresses.first().shown().to_owned(),
                reason: "it closed the connection".to_owned(),
            },
            Err(error) => error,
        };
        if !lost.may_pass() {
            return Err(lost);
        }
        if self.has_all() {
            // The process has ended and all its output is here, so the loss changes nothing.
            self.exit();
            return Ok(());
        }
        if self.since.elapsed() >= GOOD {
            self.backoff.reset();
        }
        self.since = Instant::now();
        self.ready.push_back(SessionView::Lost(lost.to_string()));
        self.try_again();
        Ok(())
    }

    fn step(&mut self, frame: ServerFrame) -> Result<(), ClientError> {
        self.take(frame)?;
        self.show_joined();
        if self.waits_for_owner && self.position.has_begun() {
            self.waits_for_owner = false;
            let messages: Vec<ClientMessage> = self.inputs.unacknowledged().collect();
            messages.iter().for_each(|message| self.say(message));
        }
        if let Some(attach) = self.position.repaint_due() {
            self.say(&attach);
        }
        if let Some(turns) = self.position.turns_due() {
            self.say(&turns);
        }
        self.say_inputs();
        Ok(())
    }

    fn take(&mut self, frame: ServerFrame) -> Result<(), ClientError> {
        let step = self.position.take(frame);
        if let Some(exited) = self.exited.as_mut().filter(|_| matches!(step, Step::Show(_))) {
            exited.since = Instant::now();
        }
        match step {
            Step::Show(SessionView::Ended(ending)) => self.end(ending),
            // The process has ended before the input came. This is no refusal to show: the rest of the
            // output follows, then the end.
            Step::Show(SessionView::Refused(words)) if is_too_late(&words) => self.inputs.refused(),
            // The server attaches again by itself, as soon as it reaches the session's machine. Input
            // that was refused with this is sent again then.
            Step::Show(SessionView::Refused(words))
                if !self.position.has_begun()
                    && self.position.last_seq().is_some()
                    && is_out_of_reach(&words) =>
            {
                self.waits_for_owner = true;
                self.ready.push_back(SessionView::Refused(words));
            }
            Step::Show(SessionView::Refused(words)) if !self.position.has_begun() => {
                return Err(refusal(words));
            }
            Step::Show(SessionView::Refused(words)) => {
                self.inputs.refused();
                self.ready.push_back(SessionView::Refused(words));
            }
            Step::Show(seen) => self.ready.push_back(seen),
            Step::Acknowledged(ack) => {
                if self.inputs.acknowledged(&ack.input_id) {
                    self.ready.push_back(SessionView::Taken { turn: ack.turn });
                }
            }
            Step::Attach => {
                let attach = self.position.attach();
                self.say(&attach);
            }
            Step::Exited { code, last_seq } => {
                let since = self.exited.as_ref().map_or_else(Instant::now, |exited| exited.since);
                self.exited = Some(ProcessEnd { code, last_seq, since });
            }
            Step::Nothing => {}
        }
        Ok(())
    }

    /// The time at which the output of an ended process counts as complete, unless more comes. `None`
    /// while the process runs.
    fn over_at(&self) -> Option<Instant> {
        let exited = self.exited.as_ref()?;
        let waits = match (exited.last_seq, self.has_all()) {
            (Some(_), true) if !self.settings.is_agent => Duration::ZERO,
            (_, true) => QUIET,
            (_, false) => STALLED,
        };
        Some(exited.since + waits)
    }

    /// Whether the process has ended and all its output is here, as far as is known.
    fn has_all(&self) -> bool {
        self.exited.as_ref().is_some_and(|exited| match exited.last_seq {
            Some(last) => self.position.has_begun() && self.position.last_seq() >= Some(last),
            None => self.position.has_begun(),
        })
    }

    fn exit(&mut self) {
        let code = self.exited.as_ref().and_then(|exited| exited.code);
        self.end(Ending::Exited { code });
    }

    fn show_joined(&mut self) {
        let joined = self.position.joined();
        if !joined.is_empty()
            && let Some(exited) = &mut self.exited
        {
            // More may follow: the wait for it starts again.
            exited.since = Instant::now();
        }
        self.ready.extend(joined);
    }

    fn end(&mut self, ending: Ending) {
        self.ready.extend(self.position.joined_at_end());
        self.state = FollowerState::Over;
        self.ready.push_back(SessionView::Ended(ending));
    }

    fn try_again(&mut self) {
        let (addresses, wait) = (self.addresses.clone(), self.backoff.next(jitter()));
        self.state = FollowerState::Connecting(Box::pin(async move {
            // Also before the first attempt: a server that ends drops all its clients at once.
            sleep(wait).await;
            let connected = Workspace::try_each(&addresses).await;
            connected.map_err(|errors| errors.for_next_connection())
        }));
    }

    fn connected(&mut self, connected: Result<Workspace, ClientError>) -> Result<(), ClientError> {
        match connected {
            Ok(workspace) => {
                // The next loss is tried there first, and not at the server that was lost before.
                self.addresses.begin_with(workspace.server());
                self.state = FollowerState::Connected(Box::new(workspace));
                self.waits_for_owner = false;
                self.since = Instant::now();
                // Nothing could come while there was no connection.
                if let Some(exited) = &mut self.exited {
                    exited.since = self.since;
                }
                self.ready.push_back(SessionView::Back);
                // If the connection is lost in this moment, the next read reports the loss.
                let _ = self.hello();
                self.say_inputs();
                Ok(())
            }
            Err(error) if error.may_pass() && self.since.elapsed() < self.settings.patience => {
                self.try_again();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
