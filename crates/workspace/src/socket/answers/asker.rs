//! The asker of a request, and the destination of the answer.

use std::sync::Arc;

use protocol::workspace::{ServerMessage, SessionId};
use wire::Outbox;

use crate::{
    identity::Identity,
    refusal::Refusal,
    sessions::ClientId,
    socket::{services::Services, shares::Shares, watching::Watching},
    teams::Desk,
};

/// The answer to a request; `None` if there is no answer, or if it is sent in another way.
pub(in crate::socket) type Answer = Result<Option<ServerMessage>, Refusal>;

/// The asker and its connection.
#[derive(Clone)]
pub(in crate::socket) struct Asker {
    pub(in crate::socket) services: Arc<Services>,
    pub(in crate::socket) me: Arc<Identity>,
    pub(in crate::socket) client: ClientId,
    pub(in crate::socket) outbox: Outbox,
    pub(in crate::socket) watching: Watching,
    pub(in crate::socket) shares: Shares,
    /// The session that the client was attached to when it sent the request.
    pub(in crate::socket) attached: Option<SessionId>,
}

impl Asker {
    /// Handles this client's requests about teams.
    pub(in crate::socket) fn desk(&self) -> Desk {
        self.services.teams.desk(&self.me)
    }

    /// Notes in the audit log what this client did.
    pub(in crate::socket) fn note(&self, what: &'static str, target: &str, outcome: &str) {
        self.services.audit.note(&self.me.who, what, target, outcome);
    }

    /// Notes the outcome of an attempt in the audit log.
    pub(in crate::socket) fn note_outcome<T>(
        &self,
        what: &'static str,
        target: &str,
        result: &Result<T, Refusal>,
    ) {
        self.services.audit.note_outcome(&self.me.who, what, target, result);
    }
}
