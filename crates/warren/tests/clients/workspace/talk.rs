//! A session of an agent, as a client sees it.

use client::{
    Workspace,
    workspace::{Address, Follower, FollowerSettings, SessionView},
};
use protocol::workspace::{
    AgentEvent, ClientMessage, SessionId, TurnOutcome,
    client::{
        OfSession, PermissionOutcome, PermissionRequest, PermissionResponse, SendInput, Usage,
    },
};
use tokio::time::timeout;

use crate::program::DEADLINE;

/// One who looks at a session, and prompts.
pub(super) struct Talk {
    pub(super) id: SessionId,
    follower: Follower,
    /// Of the turn so far.
    events: Vec<AgentEvent>,
    /// All that the agent printed; what else was seen stands in between.
    log: String,
}

/// A turn that has ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) outcome: TurnOutcome,
    pub(super) error: String,
    pub(super) text: String,
    pub(super) events: Vec<AgentEvent>,
    pub(super) usage: Usage,
}

impl Talk {
    /// Attaches, and has the screen: what happens from now on is seen.
    pub(super) async fn begin(client: Workspace, address: &Address, id: SessionId) -> Self {
        let settings = FollowerSettings { is_agent: true, ..FollowerSettings::default() };
        let follower = Follower::begin(client, address, id, settings).unwrap();
        let mut talk = Self { id, follower, events: Vec::new(), log: String::new() };
        while !matches!(talk.next().await, SessionView::Screen(_)) {}
        talk
    }

    /// One turn, to its end.
    pub(super) async fn turn(&mut self, prompt: &str) -> Turn {
        self.prompt(prompt).await;
        self.ends().await
    }

    /// One turn that has to go well; its answer.
    pub(super) async fn answer(&mut self, prompt: &str) -> Turn {
        self.turn(prompt).await.well()
    }

    /// Begins a turn.
    pub(super) async fn prompt(&mut self, text: &str) {
        let (session_id, input) = (self.id, text.to_owned());
        self.says(&ClientMessage::SendInput(SendInput { session_id, input, input_id: None }));
        self.until(|event| matches!(event, AgentEvent::TurnStarted { .. })).await;
    }

    pub(super) fn interrupt(&mut self) {
        self.says(&ClientMessage::Interrupt(OfSession { session_id: self.id }));
    }

    /// The rest of a turn, and what it took.
    pub(super) async fn ends(&mut self) -> Turn {
        let ended = loop {
            let seen = self.next().await;
            if let SessionView::Event(AgentEvent::TurnEnded { outcome, error, text, .. }) = seen {
                break (outcome, error.unwrap_or_default(), text.unwrap_or_default());
            }
        };
        let usage = loop {
            if let SessionView::Used(usage) = self.next().await {
                break usage;
            }
        };
        let (outcome, error, text) = ended;
        Turn { outcome, error, text, events: std::mem::take(&mut self.events), usage }
    }

    /// Waits for an event.
    pub(super) async fn until(&mut self, wished: impl Fn(&AgentEvent) -> bool) {
        while !self.events.iter().any(&wished) {
            self.next().await;
        }
    }

    /// Waits for a question.
    pub(super) async fn question(&mut self) -> PermissionRequest {
        loop {
            if let SessionView::Permission(request) = self.next().await {
                return request;
            }
        }
    }

    /// Answers it, and waits until that is settled.
    pub(super) async fn permits(
        &mut self,
        request: &PermissionRequest,
        allow: bool,
        message: &str,
    ) {
        let response = PermissionResponse {
            session_id: Some(self.id),
            request_id: request.request_id,
            allow,
            message: Some(message.to_owned()),
        };
        self.says(&ClientMessage::PermissionResponse(response));
        let expected = if allow { PermissionOutcome::Allow } else { PermissionOutcome::Deny };
        loop {
            if let SessionView::Resolved(resolved) = self.next().await {
                assert_eq!(resolved.outcome, expected);
                return;
            }
        }
    }

    fn says(&mut self, message: &ClientMessage) {
        self.follower.tell(message).unwrap();
    }

    async fn next(&mut self) -> SessionView {
        let seen = timeout(DEADLINE, self.follower.next()).await;
        let seen = seen.unwrap_or_else(|_| panic!("nothing is heard in {DEADLINE:?}")).unwrap();
        let seen = seen.expect("the session stays");
        match &seen {
            SessionView::Screen(screen) => self.log.push_str(&screen.data),
            SessionView::Output(output) => self.log.push_str(&String::from_utf8_lossy(output)),
            SessionView::Event(event) => {
                self.log.push_str(&format!("  {event:?}\n"));
                self.events.push(event.clone());
            }
            SessionView::Refused(words) => panic!("refused: {words}"),
            other => self.log.push_str(&format!("  {other:?}\n")),
        }
        seen
    }
}

impl Drop for Talk {
    #[expect(clippy::print_stderr, reason = "the log belongs to the failure of the test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- session {}\n{}---", self.id, self.log);
        }
    }
}

impl Turn {
    /// Checks that it has ended well.
    #[track_caller]
    pub(super) fn well(self) -> Self {
        assert_eq!(self.outcome, TurnOutcome::Completed, "{}: {:?}", self.error, self.events);
        self
    }

    /// The outputs of the tools that went well, or did not.
    pub(super) fn results(&self, wished: bool) -> Vec<&str> {
        let results = self.events.iter().filter_map(|event| match event {
            AgentEvent::ToolFinished { ok, output, .. } if *ok == wished => Some(output.as_str()),
            _ => None,
        });
        results.collect()
    }
}

/// A piece of an answer.
pub(super) fn is_text(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::Text { .. })
}
