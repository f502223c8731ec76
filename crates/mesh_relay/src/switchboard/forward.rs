//! Forwarding from one node to another.

use std::time::Duration;

use protocol::mesh::relay::{
    Code, Forward, ForwardKind, RelayError, RelayNodeId, forward::relay_session,
};
use wire::Utf8Bytes;

use super::{Connection, Now, Switchboard};

/// Why a message is not passed on. Variants without a comment are explained by their errors.
enum Refusal {
    Stranger,
    NotItself,
    Absent,
    NoSession,
    /// The bound that was reached.
    TooMany(&'static str),
}

const TOO_MANY: &str = "One of the two nodes has as many relay sessions as it may";
const TOO_MANY_OF_PAIR: &str =
    "The two nodes have as many relay sessions with each other as they may";

impl Switchboard {
    /// Passes a message on, or tells its sender why not. Returns how long nothing may be read from
    /// the sender.
    pub(super) fn forward(
        &mut self,
        now: Now,
        from: Connection,
        message: &Forward<'_>,
        text: &Utf8Bytes,
    ) -> Duration {
        match self.route(now, from, message) {
            Ok(to) => {
                let text =
                    if message.is_verbatim() { text.clone() } else { message.encode().into() };
                let size = text.len();
                self.put(to, text, !message.is_control());
                self.passed(now, from, message, size)
            }
            Err(refusal) => {
                if message.is_control() || self.may_get_error(now, from) {
                    self.explain(from, message, &refusal);
                }
                Duration::ZERO
            }
        }
    }

    /// Handles a receiver that has not read for too long: the session ends, and both ends get the
    /// reason.
    pub fn give_up(&mut self, from: Connection, to: Connection, session: &str) {
        let words = "The other end reads too slowly: the relay session is closed";
        let error = RelayError::new(Code::PeerTooSlow, words).in_session(session);
        self.refuse(from, Code::PeerTooSlow, &error);
        self.end_session(from, to, session);
    }

    fn route(
        &mut self,
        now: Now,
        from: Connection,
        message: &Forward<'_>,
    ) -> Result<Connection, Refusal> {
        let sender = self.node(from).ok_or(Refusal::Stranger)?;
        if !sender.id.is(&message.from) {
            return Err(Refusal::NotItself);
        }
        let to = self.find(&message.to).ok_or(Refusal::Absent)?;
        let session = &message.session;
        let known = match message.kind {
            ForwardKind::Offer | ForwardKind::Answer | ForwardKind::IceCandidate => true,
            ForwardKind::RelayOpen => return self.open(now, from, to, session).map(|()| to),
            ForwardKind::RelayClose => self.sessions.close(from, to, session),
            ForwardKind::RelayReady | ForwardKind::RelayData => {
                self.sessions.used(from, to, session, now.instant)
            }
        };
        if known { Ok(to) } else { Err(Refusal::NoSession) }
    }

    fn find(&self, id: &str) -> Option<Connection> {
        // A key may be written in upper case, but hardly ever is. So the exact id is tried first.
        let exact = self.nodes.get(id);
        exact.copied().or_else(|| self.nodes.get(&RelayNodeId::new(id).ok()?).copied())
    }

    fn open(
        &mut self,
        now: Now,
        from: Connection,
        to: Connection,
        session: &str,
    ) -> Result<(), Refusal> {
        // A peer repeats the request when the answer was lost.
        if self.sessions.used(from, to, session, now.instant) {
            return Ok(());
        }
        self.make_room_between(now, from, to)?;
        // Both ends are bounded. Otherwise a node could be filled with sessions that others open.
        for node in [from, to] {
            if self.sessions.of(node) < self.settings.max_sessions {
                continue;
            }
            let idle = self.sessions.idle(node, now.instant);
            let (other, idle) = idle.ok_or(Refusal::TooMany(TOO_MANY))?;
            self.end_session(node, other, &idle);
        }
        self.sessions.open(from, to, session, now.instant);
        Ok(())
    }

    fn make_room_between(&mut self, now: Now, a: Connection, b: Connection) -> Result<(), Refusal> {
        if self.sessions.between(a, b) >= self.settings.max_sessions_of_pair {
            let idle = self.sessions.idle_between(a, b, now.instant);
            let idle = idle.ok_or(Refusal::TooMany(TOO_MANY_OF_PAIR))?;
            self.end_session(a, b, &idle);
        }
        Ok(())
    }

    /// Ends a session on the mesh relay's own account. Each end gets a close in the name of the
    /// other end, since peers know no other kind.
    fn end_session(&mut self, a: Connection, b: Connection, session: &str) {
        if !self.sessions.close(a, b, session) {
            return;
        }
        for (one, other) in [(a, b), (b, a)] {
            let (Some(from), Some(to)) = (self.node(other), self.node(one)) else { continue };
            let (from, to) = (from.id.as_str(), to.id.as_str());
            let close = relay_session(ForwardKind::RelayClose, from, to, session);
            self.send(one, close);
        }
    }

    fn passed(
        &mut self,
        now: Now,
        from: Connection,
        message: &Forward<'_>,
        size: usize,
    ) -> Duration {
        self.counts.frames += 1;
        self.counts.bytes += size as u64;
        match self.lines.get_mut(&from) {
            Some(line) if !message.is_control() => {
                let data = line.data.owe(now.instant, 1.0);
                data.max(line.bytes.owe(now.instant, size as f64))
            }
            _ => Duration::ZERO,
        }
    }

    /// Counts an error against the rate of control messages. Otherwise a node could cause errors
    /// without bound by `relayData`.
    fn may_get_error(&mut self, now: Now, from: Connection) -> bool {
        let Some(line) = self.lines.get_mut(&from) else { return false };
        let paid = line.control.take(now.instant);
        paid.map_err(|wait| self.strike(now, from, wait)).is_ok()
    }

    fn explain(&mut self, from: Connection, message: &Forward<'_>, refusal: &Refusal) {
        let session = &message.session;
        let about = |error: RelayError| match session.is_empty() {
            true => error,
            false => error.in_session(session),
        };
        let (code, error) = match refusal {
            Refusal::Stranger => return self.refuse_stranger(from),
            // The other end has closed the session first. Nothing is lost, and no node waits for an
            // answer.
            Refusal::NoSession if message.kind == ForwardKind::RelayClose => {
                return self.refused(Code::SessionNotFound);
            }
            Refusal::NotItself => {
                let words = "fromNodeID is not the node of this connection";
                (Code::WrongSender, RelayError::new(Code::WrongSender, words))
            }
            Refusal::Absent => (Code::PeerNotFound, RelayError::peer_not_found(&message.to)),
            Refusal::NoSession => {
                let words = format!("There is no relay session {session} with {}", message.to);
                (Code::SessionNotFound, RelayError::new(Code::SessionNotFound, words))
            }
            Refusal::TooMany(words) => {
                (Code::TooManySessions, RelayError::new(Code::TooManySessions, *words))
            }
        };
        self.refuse(from, code, &about(error));
    }
}
