//! What of the workspace teams need.

use std::sync::{Arc, Weak};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use protocol::workspace::{SessionId, SessionInfo, SessionMode, SessionStatus};

use super::Ticket;
use crate::{
    events::Event,
    refusal::Refusal,
    sessions::{Facts, NewSession},
    work::Shared,
};

/// So many sessions are ended at the same time.
const ENDED_AT_ONCE: usize = 16;

/// What of the workspace teams need. None of its calls waits, but for those that give a future.
pub(super) trait World: Send + Sync {
    /// Tells clients.
    fn tell(&self, event: Event);

    /// Gives a session a prompt.
    fn deliver(&self, session: SessionId, text: String, ticket: Ticket) -> Result<(), Refusal>;

    /// Makes a session.
    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<SessionInfo, Refusal>>;

    /// Ends these sessions, and forgets them.
    fn kill(&self, sessions: Vec<SessionId>) -> BoxFuture<'static, ()>;

    /// What is known of a session.
    fn facts(&self, session: SessionId) -> Option<Facts>;

    /// Whether a session is an agent that waits for a prompt.
    fn is_idle(&self, session: SessionId) -> bool;

    /// Refuses arguments that this caller may not give to an agent.
    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal>;

    /// Notes who did what to which.
    fn note(&self, who: &str, what: &'static str, target: &str);

    /// Notes who said something to which session.
    fn note_typing(&self, who: &str, session: SessionId);
}

/// The workspace itself, as long as it is there.
#[derive(Clone)]
pub(super) struct Outside(pub(super) Weak<Shared>);

impl Outside {
    fn shared(&self) -> Result<Arc<Shared>, Refusal> {
        let gone = || Refusal::Failed("the workspace is shutting down".to_owned());
        self.0.upgrade().ok_or_else(gone)
    }
}

impl World for Outside {
    fn tell(&self, event: Event) {
        if let Ok(shared) = self.shared() {
            shared.events.send(event);
        }
    }

    fn deliver(&self, session: SessionId, text: String, ticket: Ticket) -> Result<(), Refusal> {
        self.shared()?.sessions.deliver(session, text, ticket)
    }

    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<SessionInfo, Refusal>> {
        let shared = self.shared();
        async move { shared?.sessions.create(new).await }.boxed()
    }

    fn kill(&self, sessions: Vec<SessionId>) -> BoxFuture<'static, ()> {
        let shared = self.shared();
        async move {
            let Ok(shared) = shared else { return };
            let all = stream::iter(sessions);
            all.for_each_concurrent(ENDED_AT_ONCE, |id| kill(&shared, id)).await;
        }
        .boxed()
    }

    fn facts(&self, session: SessionId) -> Option<Facts> {
        self.shared().ok()?.sessions.facts(session).ok()
    }

    fn is_idle(&self, session: SessionId) -> bool {
        let info = self.shared().and_then(|shared| shared.sessions.info(session));
        info.is_ok_and(|info| info.mode == SessionMode::Sdk && info.status == SessionStatus::Idle)
    }

    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        let shared = self.shared()?;
        shared.agents.check_args(args, administrator)
    }

    fn note(&self, who: &str, what: &'static str, target: &str) {
        if let Ok(shared) = self.shared() {
            shared.audit.note(who, what, target, "done");
        }
    }

    fn note_typing(&self, who: &str, session: SessionId) {
        if let Ok(shared) = self.shared() {
            shared.audit.typed(who, session, super::core::now().now);
        }
    }
}

async fn kill(shared: &Arc<Shared>, session: SessionId) {
    match shared.sessions.kill(session).await {
        // Somebody else was quicker.
        Ok(()) | Err(Refusal::UnknownSession(_)) => {}
        Err(refusal) => tracing::error!(%session, %refusal, "a session of a team does not end"),
    }
}
