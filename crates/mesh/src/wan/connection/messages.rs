//! Handles the messages of a mesh relay.

use std::time::Duration;

use base::NodeId;
use protocol::mesh::{
    Capabilities,
    relay::{
        Code, DiscoverResponse, Forward, ForwardKind, FromRelay, Offer, PeerInfo, Presence,
        RelayError, RelayNodeId,
    },
};
use tokio::time::Instant;
use wire::Frame;

use super::{Connection, Parts, clip};
use crate::{
    peer::PeerId,
    this_machine::ThisMachine,
    wan::{registration, sort::Sort},
};

impl Connection<'_> {
    pub(super) fn frame(&mut self, frame: &Frame) {
        let text = match frame {
            Frame::Text(text) => Ok(text.as_str()),
            Frame::Binary(bytes) => std::str::from_utf8(bytes),
        };
        let Ok(text) = text else { return self.bad("a relay's frame that is no text") };
        match FromRelay::read(text) {
            Ok(message) => self.message(message),
            Err(fault) => {
                tracing::debug!(relay = &*self.parts.relay, %fault, "a relay's message was not understood");
                self.bad("a relay's message");
            }
        }
    }

    pub(super) fn message(&mut self, message: FromRelay<'_>) {
        let now = Instant::now();
        match message {
            FromRelay::RegisterChallenge(challenge) => self.challenged(now, challenge.nonce),
            FromRelay::RegisterAck(_) => self.registered(now),
            FromRelay::DiscoverResponse(list) => self.listed(now, list),
            FromRelay::PeerJoined(who) => self.joined(now, &who),
            FromRelay::PeerLeft(who) => self.left(&who),
            FromRelay::Error(error) => self.error(now, &error),
            FromRelay::Forward(message) => self.forward(now, &message),
        }
    }

    /// Handles a challenge. Only a Warren's mesh relay sends one, and before anything else.
    fn challenged(&mut self, now: Instant, nonce: String) {
        if self.clock.is_registered() {
            return self.bad("a challenge of a relay that has registered this node");
        }
        self.parts.memory.relay_is(&self.parts.relay, Sort::Warren);
        self.registration.challenged(nonce);
        self.clock.challenged(now);
    }

    pub(super) fn registered(&mut self, now: Instant) {
        if !self.clock.registered(now) {
            return;
        }
        let challenged = self.registration.is_challenged();
        if !challenged {
            self.parts.memory.relay_is(&self.parts.relay, Sort::Stock);
        }
        tracing::info!(relay = &*self.parts.relay, challenged, "registered at a relay");
        self.parts.status.set(|status| {
            (status.registered, status.challenged) = (true, challenged);
            status.last_error = None;
        });
    }

    pub(super) fn listed(&mut self, now: Instant, list: DiscoverResponse) {
        self.clock.answered(now);
        (0..list.unreadable).for_each(|_| self.bad("an entry of a relay's list"));
        self.roster.begin();
        list.peers.into_iter().for_each(|peer| self.lists(&peer));
        for peer in self.roster.end() {
            self.unlist(&peer);
        }
        let listed = self.roster.all().len();
        self.parts.status.set(|status| status.listed = listed);
    }

    pub(super) fn lists(&mut self, info: &PeerInfo) {
        let Some(peer) = info.node.key() else {
            return self.bad("a node at a relay whose id is no key");
        };
        if peer == self.own() {
            return;
        }
        // A peer whose capabilities cannot be read can still be linked to. Its capabilities then
        // count as empty.
        let capabilities = serde_json::from_str::<Capabilities>(info.capabilities.get());
        let Ok(capabilities) = capabilities.or_else(|_| serde_json::from_str("{}")) else { return };
        let has_models = !capabilities.loaded_models.is_empty();
        if !self.roster.lists(peer, capabilities.warren.as_ref(), has_models) {
            return self.bad("a peer too many on a relay's list");
        }
        let Parts { peers, events, relay, .. } = self.parts;
        let Some(peer) = peers.meet(&PeerId::Node(peer)) else {
            return self.bad("a peer too many on a relay's list");
        };
        peer.learn(|facts| facts.listed(&info.display_name, &capabilities));
        peer.set_listed(relay, true);
        events.changed(&peer);
    }

    /// Handles the announcement of a peer that has registered. Stock mesh relays announce every
    /// registration, even of peers that are listed already. That is news only if the peer had no
    /// models, since it may have some now. A Warren's mesh relay announces a listed peer only if
    /// its offer has changed.
    pub(super) fn joined(&mut self, now: Instant, who: &Presence) {
        let peer = who.node.key().filter(|peer| *peer != self.own());
        let tells_changes = self.registration.is_challenged();
        if peer.is_some_and(|peer| tells_changes || !self.roster.has_models(&peer)) {
            self.clock.news(now);
        }
    }

    pub(super) fn left(&mut self, who: &Presence) {
        let Some(peer) = who.node.key() else { return };
        self.sessions.gone(&peer, "the peer has left the relay");
        self.act();
        if self.roster.left(&peer) {
            self.unlist(&peer);
        }
    }

    pub(super) fn unlist(&self, peer: &NodeId) {
        let (id, Parts { peers, events, relay, .. }) = (PeerId::Node(*peer), self.parts);
        let Some(peer) = peers.get(&id) else { return };
        peer.set_listed(relay, false);
        events.changed(&peer);
        peers.forget(&id);
    }

    /// Counts a message of the mesh relay, or of a node through it, that was not understood.
    fn bad(&self, what: &str) {
        self.parts.machine.counts.bad(what);
    }

    pub(super) fn error(&mut self, now: Instant, error: &RelayError) {
        let why = format!("the relay says: {} ({})", clip(&error.message), clip(&error.code));
        let registering = !self.clock.is_registered();
        if let Some(peer) = error.absent_peer().and_then(|id| RelayNodeId::new(id).ok()?.key()) {
            self.sessions.gone(&peer, "the peer is not connected to the relay");
            self.act();
            if self.roster.left(&peer) {
                self.unlist(&peer);
            }
            return;
        }
        tracing::warn!(
            relay = &*self.parts.relay,
            code = clip(&error.code),
            why,
            "a relay reports an error"
        );
        self.parts.status.set(|status| status.last_error = Some(why.clone()));
        if let Some(session) = &error.session_id {
            self.sessions.refused(session, &why);
        } else if error.is(Code::RateLimited) {
            let wait = error.retry_after_seconds.unwrap_or(10.0).clamp(0.0, 300.0);
            self.clock.hold(now, Duration::from_secs_f64(wait));
        } else if error.is(Code::NotRegistered) || (registering && refuses(error)) {
            self.refused = Some(why);
        }
    }

    pub(super) fn forward(&mut self, now: Instant, message: &Forward<'_>) {
        let own = self.own();
        let for_us = RelayNodeId::new(&message.to).is_ok_and(|to| to.key() == Some(own));
        let peer = RelayNodeId::new(&message.from).ok().and_then(|from| from.key());
        let Some(peer) = peer.filter(|peer| for_us && *peer != own) else {
            return self.bad("a forwarded message of nobody, or for somebody else");
        };
        match message.kind {
            ForwardKind::Offer => self.offer(&peer, message),
            ForwardKind::Answer | ForwardKind::IceCandidate => {}
            _ => {
                let who = self.roster.who(&peer);
                self.sessions.forward(now, peer, who, message);
            }
        }
    }

    /// Answers a stock Mac's offer of a direct connection. Macs send one before they open a
    /// session, and wait for an answer.
    pub(super) fn offer(&self, peer: &NodeId, message: &Forward<'_>) {
        let ThisMachine { settings, identity, .. } = &*self.parts.machine;
        match message.payload::<Offer>() {
            Ok(_) if settings.require_sealed => self.bad("an offer of a stock peer"),
            Ok(offer) => self.send(registration::answer(identity, peer, &offer.session)),
            Err(_) => self.bad("offer"),
        }
    }
}

/// Whether an error means that this mesh relay does not register this node.
fn refuses(error: &RelayError) -> bool {
    [Code::InvalidSignature, Code::NotAdmitted, Code::RelayFull, Code::InvalidRegister]
        .into_iter()
        .any(|code| error.is(code))
}
