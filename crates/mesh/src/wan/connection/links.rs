//! The links over relay sessions.

use std::sync::Arc;

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::{ClusterMessage, WireId};
use rand::RngExt;
use tokio::time::Instant;
use tracing::Instrument;

use super::{Ask, Connection, Parts};
use crate::{
    link::{Carrier, Link, LinkProperties, NoLink},
    liveness::{Kind, Liveness, Step, Usage},
    peer::PeerId,
    wan::{
        outward::{LastUse, Outward},
        sessions::{Handle, NewLink, Output},
    },
};

/// The most callers that wait for a link to one peer.
const MAX_WAITING: usize = 1_024;

/// A link over a relay session.
pub(super) struct SessionLink {
    link: Arc<Link>,
    liveness: Liveness,
    last_use: Arc<LastUse>,
}

impl SessionLink {
    /// Takes all due steps: heartbeats, and the end of a link that is gone or idle.
    fn check(&mut self, parts: &Parts, now: Instant) {
        let Self { link, liveness, last_use } = self;
        let _in_span = link.span.enter();
        let near = link.peer.node().is_some_and(|peer| parts.peers.is_near(peer));
        while let Some(step) = liveness.due(now, Usage { last: last_use.at(), near }) {
            match step {
                Step::Beat => {
                    let beat = ClusterMessage::Heartbeat(Box::new(parts.machine.facts.heartbeat()));
                    // If the link is closed, its own task notices that.
                    let _ = link.tell(&beat);
                }
                Step::Degraded => parts.set_degraded(link, true),
                Step::Gone => return link.close("nothing was heard for too long"),
                Step::Idle => return link.close("nobody used it"),
            }
        }
    }
}

impl Parts {
    /// Sets whether a link is degraded. That changes what the scheduler gives its peer.
    fn set_degraded(&self, link: &Link, is: bool) {
        link.set_degraded(is);
        if let Some(peer) = self.peers.get(&link.peer) {
            self.events.changed(&peer);
        }
    }
}

impl Connection<'_> {
    pub(super) fn ask(&mut self, ask: Ask) {
        let Ask { peer, answer } = ask;
        let mut links = self.links.iter().filter(|(handle, _)| handle.peer == peer);
        if let Some((_, session_link)) =
            links.find(|(_, session_link)| session_link.link.is_usable())
        {
            // The caller may have stopped waiting.
            let _ = answer.send(Ok(Arc::clone(&session_link.link)));
            return;
        }
        let waiting = self.waiting.entry(peer).or_default();
        if waiting.len() >= MAX_WAITING {
            let _ = answer.send(Err(NoLink("too many wait for this peer".to_owned())));
            return;
        }
        waiting.push(answer);
        // If a session is being opened already, this opens no other one. The link answers all
        // callers that wait for the peer.
        let who = self.roster.who(&peer);
        self.sessions.open(Instant::now(), peer, who, &fresh_id());
    }

    /// Carries out the outputs of the sessions.
    pub(super) fn act(&mut self) {
        while let Some(output) = self.sessions.poll() {
            match output {
                Output::Send(text) => self.send(text),
                Output::Opened(opened) => self.opened(*opened),
                Output::Payload(handle, payload) => self.payload(handle, payload),
                Output::Ended(handle, why) => self.ended(handle, &why),
                Output::Failed(peer, why) => self.failed(&peer, &why),
            }
        }
    }

    fn opened(&mut self, new: NewLink) {
        let NewLink { handle, ours, hello, sealer, dialect, proved, order } = new;
        let Some(id) = self.sessions.id(handle) else { return };
        let warren = sealer.is_some();
        let (link, outgoing) = Link::new(LinkProperties {
            peer: PeerId::Node(handle.peer),
            carrier: Carrier::Relay(Arc::clone(&self.parts.relay)),
            sealed: warren,
            dialect,
            warren,
            opened_here: ours,
            proved,
            order,
        });
        let now = Instant::now();
        let last_use = Arc::new(LastUse::new(now));
        self.send_for(
            handle,
            Outward {
                own: self.own().to_string(),
                peer: handle.peer.to_string(),
                id,
                sealer,
                link: Arc::clone(&link),
                outgoing,
                outbox: self.outbox.clone(),
                turn: Arc::clone(&self.turn),
                last_use: Arc::clone(&last_use),
            },
        );
        let liveness = Liveness::new(now, Kind::Session { ours, warren });
        self.links.insert(handle, SessionLink { link: Arc::clone(&link), liveness, last_use });
        self.show_sessions();
        // Before the callers get the link, so that its peer has it by then.
        self.parts.events.opened(&link, hello.as_ref());
        self.answer_waiting(&handle.peer, &Ok(link));
    }

    /// Starts the task that sends what is queued on a link.
    fn send_for(&self, handle: Handle, outward: Outward) {
        let notice = self.notice.clone();
        let span = outward.link.span.clone();
        let sending = async move {
            outward.run().await;
            // If there is no receiver, the connection has ended, and the link with it.
            let _ = notice.send(handle).await;
        };
        self.parts.machine.tasks.spawn(sending.instrument(span));
    }

    fn payload(&mut self, handle: Handle, payload: Bytes) {
        let Some(session_link) = self.links.get_mut(&handle) else { return };
        session_link.last_use.passes(&payload);
        let link = Arc::clone(&session_link.link);
        let _in_span = link.span.enter();
        if session_link.liveness.heard(Instant::now()) {
            self.parts.set_degraded(&link, false);
        }
        self.parts.events.received(&link, payload);
    }

    fn ended(&mut self, handle: Handle, why: &str) {
        if let Some(session_link) = self.links.remove(&handle) {
            let _in_span = session_link.link.span.enter();
            self.parts.events.closed(&session_link.link, why);
        }
        self.show_sessions();
    }

    fn failed(&mut self, peer: &NodeId, why: &str) {
        tracing::debug!(peer = %peer.short(), relay = &*self.parts.relay, why, "no relay session came about");
        self.answer_waiting(peer, &Err(NoLink(why.to_owned())));
    }

    fn answer_waiting(&mut self, peer: &NodeId, answer: &Result<Arc<Link>, NoLink>) {
        for waiting in self.waiting.remove(peer).unwrap_or_default() {
            // The caller may have stopped waiting.
            let _ = waiting.send(answer.clone());
        }
    }

    /// Handles a link that was closed at this end, after its queued small messages were sent.
    pub(super) fn closed_here(&mut self, handle: Handle) {
        if let Some(session_link) = self.links.get(&handle) {
            let why = session_link.link.why_closed().unwrap_or_default();
            self.sessions.close(handle, &why);
        }
    }

    pub(super) fn check_links(&mut self, now: Instant) {
        self.links.values_mut().for_each(|link| link.check(self.parts, now));
    }

    fn show_sessions(&self) {
        let sessions = self.links.len();
        self.parts.status.set(|status| status.sessions = sessions);
    }

    /// Ends everything that went over this connection. `goodbye` says whether the peers get a
    /// message first.
    pub(super) fn leave(&mut self, why: &str, goodbye: bool) {
        // The peers get their goodbye first, while the connection still takes messages.
        if goodbye {
            self.sessions.all().into_iter().for_each(|handle| self.sessions.close(handle, why));
        }
        self.sessions.lost(&format!("the connection to the relay has ended: {why}"));
        self.act();
        for peer in self.roster.all() {
            self.unlist(&peer);
        }
        for (_, waiting) in self.waiting.drain() {
            for answer in waiting {
                let _ = answer.send(Err(NoLink(why.to_owned())));
            }
        }
    }
}

fn fresh_id() -> String {
    WireId::from_random(rand::rng().random()).to_string()
}
