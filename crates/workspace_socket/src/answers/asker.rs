//! The asker of a request, and the destination of the answer.

use std::sync::Arc;

use protocol::workspace::{ServerMessage, SessionId};
use wire::Outbox;
use workspace::{ClientId, Identity, Refusal};
use workspace_teams::Desk;

use crate::{project_watch::ProjectWatch, services::Services, shares::Shares};

/// The answer to a request; `None` if there is no answer, or if it is sent in another way.
pub(crate) type Answer = Result<Option<ServerMessage>, Refusal>;

/// The asker and its connection.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) services: Arc<Services>,
    pub(crate) me: Arc<Identity>,
    pub(crate) client: ClientId,
    pub(crate) outbox: Outbox,
    pub(crate) watch: ProjectWatch,
    pub(crate) shares: Shares,
    /// The session that the client was attached to when it sent the request.
    pub(crate) attached: Option<SessionId>,
    /// Whether the client gets the events for all clients from this machine.
    pub(crate) hears_events: bool,
}

impl Asker {
    /// Handles this client's requests about teams.
    pub(crate) fn desk(&self) -> Desk {
        self.services.teams.desk(&self.me)
    }

    /// Notes in the audit log what this client did.
    pub(crate) fn note(&self, what: &'static str, target: &str, outcome: &str) {
        self.services.audit.note(&self.me.who, what, target, outcome);
    }

    /// Notes the outcome of an attempt in the audit log.
    pub(crate) fn note_outcome<T>(
        &self,
        what: &'static str,
        target: &str,
        result: &Result<T, Refusal>,
    ) {
        self.services.audit.note_outcome(&self.me.who, what, target, result);
    }
}
