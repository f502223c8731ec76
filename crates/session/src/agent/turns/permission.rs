//! The permission requests of an agent.
//!
//! A request belongs to the session, not to a connection: a client that connects later finds it.

use std::time::Instant;

use protocol::workspace::PermissionOutcome;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Turns,
    config::{MAX_PENDING, MAX_PENDING_BYTES},
    output::{Output, TurnsError},
};
use crate::agent::{dialect::contract::Decision, dialect::words};

/// A permission request that waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// The id of the request.
    pub request_id: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
}

/// A waiting request with the dialect's key for it.
#[derive(Debug)]
pub(super) struct OpenPermission {
    pub(super) pending: Pending,
    pub(super) key: String,
    pub(super) bytes: usize,
    pub(super) expires: Instant,
}

/// The most bytes of the reason for a refusal.
const MAX_MESSAGE: usize = 4 * 1024;

impl Turns {
    /// The requests that wait, oldest first.
    pub fn pending(&self) -> Vec<Pending> {
        self.permissions.iter().map(|permission| permission.pending.clone()).collect()
    }

    pub(super) fn ask(&mut self, now: Instant, key: String, tool: &str, input: Value) {
        // The agent has asked again under the same key, so the former request has no use any more.
        self.drop_permission(&key);
        let bytes = input.to_string().len();
        let all: usize = self.permissions.iter().map(|permission| permission.bytes).sum();
        if self.permissions.len() >= MAX_PENDING || all + bytes > MAX_PENDING_BYTES {
            self.notice("More permissions are asked for than may wait; this one was refused.");
            self.answer(&key, Decision::Deny("Too many requests wait for the user."));
            return;
        }
        // The number only rises: an id stands for one request, even for a client that answers late.
        self.requests += 1;
        let prefix = &self.config.request_prefix;
        let request_id = format!("{prefix}.{}.{}", self.number, self.requests);
        let tool = words::cut(tool, 1024).to_owned();
        let pending = Pending { request_id: request_id.clone(), tool: tool.clone(), input };
        self.outputs.push_back(Output::Ask { request_id, tool, input: pending.input.clone() });
        let expires = now + self.config.permission_timeout;
        self.permissions.push(OpenPermission { pending, key, bytes, expires });
    }

    /// Cancels a request that the agent has withdrawn.
    pub(super) fn withdraw(&mut self, key: &str) {
        self.answer(key, Decision::Cancelled);
        self.drop_permission(key);
    }

    fn drop_permission(&mut self, key: &str) {
        if let Some(at) = self.permissions.iter().position(|permission| permission.key == key) {
            let permission = self.permissions.remove(at);
            self.resolve(permission, PermissionOutcome::Expired, None);
        }
    }

    pub(super) fn decide(
        &mut self,
        now: Instant,
        request_id: &str,
        allow: bool,
        message: Option<String>,
    ) -> Result<(), TurnsError> {
        let at = self
            .permissions
            .iter()
            .position(|permission| permission.pending.request_id == request_id);
        let at = at.ok_or_else(|| TurnsError::UnknownRequest {
            request_id: words::cut(request_id, 200).to_owned(),
        })?;
        let permission = self.permissions.remove(at);
        let why = message.as_deref().unwrap_or("The user refused.");
        let why = words::cut(why, MAX_MESSAGE).to_owned();
        match allow {
            true => self.answer(&permission.key, Decision::Allow),
            false => self.answer(&permission.key, Decision::Deny(&why)),
        }
        let outcome = if allow { PermissionOutcome::Allow } else { PermissionOutcome::Deny };
        self.resolve(permission, outcome, message.map(|m| words::cut(&m, MAX_MESSAGE).to_owned()));
        self.note_progress(now);
        Ok(())
    }

    /// Refuses the requests that nobody decided in time.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(at) =
            self.permissions.iter().position(|permission| permission.expires <= now)
        {
            let permission = self.permissions.remove(at);
            self.answer(&permission.key, Decision::Deny("Nobody decided in time."));
            self.resolve(permission, PermissionOutcome::Expired, None);
            self.note_progress(now);
        }
    }

    pub(super) fn permission_deadline(&self) -> Option<Instant> {
        self.permissions.iter().map(|permission| permission.expires).min()
    }

    /// Cancels all requests. The agent gets an answer to each, if its process still takes input.
    pub(super) fn cancel_all(&mut self) {
        for permission in std::mem::take(&mut self.permissions) {
            self.answer(&permission.key, Decision::Cancelled);
            self.resolve(permission, PermissionOutcome::Expired, None);
        }
    }

    fn answer(&mut self, key: &str, decision: Decision<'_>) {
        let bytes = self.dialect.answer(key, decision);
        if !bytes.is_empty() {
            self.write(bytes);
        }
    }

    fn resolve(
        &mut self,
        permission: OpenPermission,
        outcome: PermissionOutcome,
        message: Option<String>,
    ) {
        let request_id = permission.pending.request_id;
        self.outputs.push_back(Output::Resolved { request_id, outcome, message });
    }

    /// Notes progress of the turn: the time in which a person decided does not count as silence.
    fn note_progress(&mut self, now: Instant) {
        if let Some(turn) = &mut self.turn {
            turn.last_progress = now;
        }
    }
}
