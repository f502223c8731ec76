//! The parts of the workspace that teams use.

use futures_util::future::BoxFuture;
use protocol::workspace::{ProjectId, SessionId, SessionInfo};
use workspace::{Event, Facts, NewSession, Receipt, Refusal};

/// The parts of the workspace that teams use. Only methods that return a future may wait.
pub(crate) trait TeamHost: Send + Sync {
    /// Sends an event to clients.
    fn tell(&self, event: Event);

    /// Gives a session a prompt.
    fn deliver(&self, session: SessionId, text: String, receipt: Receipt) -> Result<(), Refusal>;

    /// Makes a session.
    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<SessionInfo, Refusal>>;

    /// Makes a session for a team of another member, with an id that its owner chose.
    fn create_as(
        &self,
        id: SessionId,
        new: NewSession,
    ) -> BoxFuture<'static, Result<SessionInfo, Refusal>>;

    /// The state of a session of this machine.
    fn info(&self, session: SessionId) -> Option<SessionInfo>;

    /// Whether this machine has such a project.
    fn has_project(&self, project: ProjectId) -> bool;

    /// Ends those of these sessions that this machine runs, and forgets them.
    fn kill(&self, sessions: Vec<SessionId>) -> BoxFuture<'static, ()>;

    /// The facts about a session of this machine, if it is known.
    fn facts(&self, session: SessionId) -> Option<Facts>;

    /// The name of a session of any machine.
    fn name(&self, session: SessionId) -> Option<String> {
        self.facts(session)?.name
    }

    /// Whether there is such a session, on any machine.
    fn is_known(&self, session: SessionId) -> bool {
        self.facts(session).is_some()
    }

    /// Whether a session is an agent that waits for a prompt.
    fn is_idle(&self, session: SessionId) -> bool;

    /// Refuses arguments that this caller may not give to an agent.
    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal>;

    /// Notes in the audit log who did what, and to what.
    fn note(&self, who: &str, what: &'static str, target: &str);

    /// Notes in the audit log who sent input to which session.
    fn note_typing(&self, who: &str, session: SessionId);
}
