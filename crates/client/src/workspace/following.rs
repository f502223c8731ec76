//! A session's output and all that belongs to it, over any number of connections: when one is lost,
//! the next is tried for, and what was shown is not shown again.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use base::Backoff;
use protocol::workspace::{
    ClientMessage, SessionId,
    client::{ListSessions, Resize},
    limits::{MAX_COLS, MAX_ROWS, MIN_COLS, MIN_ROWS},
};
use tokio::time::{Instant, sleep, sleep_until};
use wire::dial::jitter;

use super::{
    address::Address,
    answer::{is_too_late, refusal},
    connection::{ServerFrame, Workspace},
    inputs::{Inputs, unique},
    position::{Ending, SessionPosition, SessionView, Step},
};
use crate::error::ClientError;

/// How long nothing must come after a process has ended before its output is over, if it is not known
/// what is still to come. For an agent, the same after its last line.
const QUIET: Duration = Duration::from_millis(300);
/// How long output that is known to be coming is waited for.
const STALLED: Duration = Duration::from_secs(30);
/// A connection that held this long was a good one: the next is tried for at once.
const GOOD: Duration = Duration::from_secs(10);

/// How a session is followed.
#[derive(Debug, Clone)]
pub struct FollowingSettings {
    /// Whether it is an agent, whose events count.
    pub is_agent: bool,
    /// The size of the terminal that it is shown on: columns, rows.
    pub size: Option<(u16, u16)>,
    /// The first wait before a new connection is tried for, and the longest.
    pub backoff: (Duration, Duration),
    /// For how long it is tried, before the loss is an error.
    pub patience: Duration,
    /// Whether it is shown from its first output on, as the client that created it wants. Otherwise it
    /// is shown from its present screen.
    pub from_start: bool,
}

impl Default for FollowingSettings {
    fn default() -> Self {
        Self {
            is_agent: false,
            size: None,
            backoff: (Duration::from_millis(200), Duration::from_secs(5)),
            patience: Duration::MAX,
            from_start: false,
        }
    }
}

/// A session that is followed.
pub struct Following {
    address: Address,
    settings: FollowingSettings,
    position: SessionPosition,
    inputs: Inputs,
    state: FollowingState,
    backoff: Backoff,
    /// When the last connection stood, or was lost.
    since: Instant,
    exited: Option<Exited>,
    ready: VecDeque<SessionView>,
}

/// Its process has ended.
struct Exited {
    code: Option<i32>,
    /// The number of its last output, if known.
    last_seq: Option<u64>,
    /// When some of its output last came.
    since: Instant,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Workspace, ClientError>> + Send>>;

enum FollowingState {
    Connected(Box<Workspace>),
    Connecting(Connecting),
    Over,
}

impl Following {
    /// Follows a session from its present screen or its first output on. The first connection is there
    /// already.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when that is lost.
    pub fn begin(
        workspace: Workspace,
        address: &Address,
        session: SessionId,
        settings: FollowingSettings,
    ) -> Result<Self, ClientError> {
        let (first, last) = settings.backoff;
        let mut following = Self {
            address: address.clone(),
            position: SessionPosition::new(
                session,
                settings.is_agent,
                settings.from_start.then_some(0),
            ),
            inputs: Inputs::new(session, unique()),
            state: FollowingState::Connected(Box::new(workspace)),
            backoff: Backoff::new(first, last),
            since: Instant::now(),
            exited: None,
            ready: VecDeque::new(),
            settings,
        };
        following.hello()?;
        Ok(following)
    }

    /// What is to be shown next; `None`: nothing any more. May be dropped at any await.
    ///
    /// # Errors
    /// When the server refuses, or stays lost for longer than the settings' patience.
    pub async fn next(&mut self) -> Result<Option<SessionView>, ClientError> {
        loop {
            if let Some(seen) = self.ready.pop_front() {
                return Ok(Some(seen));
            }
            let over_at = self.over_at();
            match &mut self.state {
                FollowingState::Over => return Ok(None),
                FollowingState::Connecting(connecting) => {
                    let connected = connecting.await;
                    self.connected(connected)?;
                }
                FollowingState::Connected(workspace) => {
                    let frame = tokio::select! {
                        biased;
                        frame = workspace.next() => frame,
                        () = at(over_at) => {
                            self.exit();
                            continue;
                        }
                    };
                    self.received(frame)?;
                }
            }
        }
    }

    /// The same, of what is here already.
    ///
    /// # Errors
    /// As [`Following::next`].
    pub fn ready(&mut self) -> Result<Option<SessionView>, ClientError> {
        while self.ready.is_empty() {
            let FollowingState::Connected(workspace) = &mut self.state else { return Ok(None) };
            match workspace.ready() {
                Ok(None) => return Ok(None),
                frame => self.received(frame)?,
            }
        }
        Ok(self.ready.pop_front())
    }

    /// Says what was typed, and hears nothing: for a caller that can show no more now. It does not end. May be
    /// dropped at any await.
    pub async fn write(&mut self) {
        if let FollowingState::Connected(workspace) = &mut self.state {
            workspace.write().await;
        }
        std::future::pending::<()>().await;
    }

    /// Whether more may be typed now; else too much waits for the server already.
    pub fn has_room(&self) -> bool {
        self.inputs.has_room()
    }

    /// So many typed bytes wait here: as many are on their way as may be.
    pub fn waiting(&self) -> usize {
        self.inputs.waiting()
    }

    /// Types; `false`: too much waits for the server already, and this is dropped. Without a connection
    /// it is sent when there is one again.
    pub fn type_in(&mut self, keys: &[u8]) -> bool {
        let is_taken = self.inputs.push(keys);
        self.say_inputs();
        is_taken
    }

    /// Gives it a whole prompt; `false`: too many wait for the server already, and this is dropped.
    /// Without a connection it is sent when there is one again. [`SessionView::Taken`] tells that it was
    /// taken.
    pub fn prompt(&mut self, text: String) -> bool {
        let is_taken = self.inputs.prompt(text);
        self.say_inputs();
        is_taken
    }

    /// Asks for the whole screen again, once all that was missed during a loss has come:
    /// [`SessionView::Screen`].
    pub fn repaint(&mut self) {
        self.position.repaint();
    }

    /// The terminal that it is shown on has another size.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.settings.size = Some((cols, rows));
        if let Some(message) = self.size() {
            self.say(&message);
        }
    }

    /// Tells the server something that is not to be told again on another connection.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when there is no connection now.
    pub fn tell(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        match &mut self.state {
            FollowingState::Connected(workspace) => workspace.send(message),
            _ => Err(ClientError::Unreachable {
                url: self.address.shown().to_owned(),
                reason: "the connection is lost, and another is tried for".to_owned(),
            }),
        }
    }

    /// Follows no more; what is on its way to the server still leaves.
    pub async fn close(self) {
        if let FollowingState::Connected(workspace) = self.state {
            workspace.close().await;
        }
    }

    /// What is said first on each connection. The list tells whether the session ended meanwhile.
    fn hello(&mut self) -> Result<(), ClientError> {
        let attach = self.position.attach();
        let list = ClientMessage::ListSessions(ListSessions { include_hidden: true });
        let messages = [Some(attach), self.size(), Some(list)].into_iter().flatten();
        let messages: Vec<ClientMessage> = messages.chain(self.inputs.again()).collect();
        messages.iter().try_for_each(|message| self.tell(message))
    }

    fn size(&self) -> Option<ClientMessage> {
        let (cols, rows) = self.settings.size?;
        if cols < MIN_COLS || rows < MIN_ROWS {
            return None;
        }
        let (cols, rows) = (cols.min(MAX_COLS), rows.min(MAX_ROWS));
        let session_id = self.position.session();
        Some(ClientMessage::Resize(Resize { session_id, cols, rows, visible: true }))
    }

    /// Says it, if it can be said now. If not, the loss shows in what is heard next.
    fn say(&mut self, message: &ClientMessage) {
        if let FollowingState::Connected(workspace) = &mut self.state {
            let _ = workspace.send(message);
        }
    }

    /// Says as much of what was typed as may be on its way.
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
                url: self.address.shown().to_owned(),
                reason: "it closed the connection".to_owned(),
            },
            Err(error) => error,
        };
        if !is_passing(&lost) {
            return Err(lost);
        }
        if self.has_all() {
            // The process has ended, and so has what told of it.
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
        if let Some(attach) = self.position.repaint_due() {
            self.say(&attach);
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
            // Its output is still to come, and then its end.
            Step::Show(SessionView::Refused(words)) if is_too_late(&words) => self.inputs.refused(),
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
                self.exited = Some(Exited { code, last_seq, since });
            }
            Step::Nothing => {}
        }
        Ok(())
    }

    /// When its output counts as over after its process has ended, unless more comes.
    fn over_at(&self) -> Option<Instant> {
        let exited = self.exited.as_ref()?;
        let waits = match (exited.last_seq, self.has_all()) {
            (Some(_), true) if !self.settings.is_agent => Duration::ZERO,
            (_, true) => QUIET,
            (_, false) => STALLED,
        };
        Some(exited.since + waits)
    }

    /// Whether its process has ended and all of its output is here, as far as is known.
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

    fn end(&mut self, ending: Ending) {
        self.state = FollowingState::Over;
        self.ready.push_back(SessionView::Ended(ending));
    }

    fn try_again(&mut self) {
        let (address, wait) = (self.address.clone(), self.backoff.next(jitter()));
        self.state = FollowingState::Connecting(Box::pin(async move {
            sleep(wait).await;
            Workspace::connect(&address).await
        }));
    }

    fn connected(&mut self, connected: Result<Workspace, ClientError>) -> Result<(), ClientError> {
        match connected {
            Ok(workspace) => {
                self.state = FollowingState::Connected(Box::new(workspace));
                self.since = Instant::now();
                if let Some(exited) = &mut self.exited {
                    exited.since = self.since;
                }
                self.ready.push_back(SessionView::Back);
                // A loss in this moment shows in what is heard next.
                let _ = self.hello();
                self.say_inputs();
                Ok(())
            }
            Err(error) if is_passing(&error) && self.since.elapsed() < self.settings.patience => {
                self.try_again();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether trying again may help.
fn is_passing(error: &ClientError) -> bool {
    let is_for_now = |status| matches!(status, 408 | 425 | 429 | 500..);
    match error {
        ClientError::Refused { status, .. } => is_for_now(*status),
        error => error.is_unreachable(),
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
