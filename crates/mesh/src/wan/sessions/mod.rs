//! The relay sessions at one mesh relay. Pure, except for the keys and random numbers of
//! handshakes.
//!
//! A session is opened with `relayOpen` and answered with `relayReady`. Between Warrens a handshake
//! follows: 0x11 or 0x14, then 0x12, then an empty sealed record, which proves that message 1 was
//! not a recording. Stock peers begin with a message in clear text. If two Warrens open a session
//! to each other at once, the session that the node with the lower id opened stays.
//!
//! - `session`: one session

mod session;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::{
    Dialect,
    cluster::Hello,
    relay::{Forward, ForwardKind},
};
use seal::Sealer;
use tokio::time::Instant;

use self::session::{Context, End, RelaySession};
use super::{memory::Memory, words};
use crate::{link::Order, this_machine::ThisMachine};

/// The time limit for a session to become a link.
pub(super) const OPENED_WITHIN: Duration = Duration::from_secs(10);

/// How long a stock peer may be silent in a session that it has opened. Macs may wait 15 s.
const STOCK_SPEAKS_WITHIN: Duration = Duration::from_secs(60);

/// The most sessions at one mesh relay.
const MAX_SESSIONS: usize = 1_024;

/// The most sessions with one peer. Stock gateways open one for each request.
const MAX_OF_PEER: usize = 64;

const TOO_MANY: &str = "too many relay sessions are open";

/// Identifies a session on one connection to a mesh relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Handle {
    pub(super) peer: NodeId,
    pub(super) number: u64,
}

/// The facts that a mesh relay gives about a peer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RelayedPeer {
    /// Whether it is listed.
    pub(super) listed: bool,
    /// How it seals its sessions, if it is a Warren.
    pub(super) warren: Option<Seals>,
}

/// The way in which a Warren seals its sessions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seals {
    /// Whether it wants the passcode proved.
    pub(super) psk: bool,
}

/// A session that has become a link.
pub(super) struct NewLink {
    pub(super) handle: Handle,
    pub(super) ours: bool,
    pub(super) hello: Option<Hello>,
    /// The cipher state, between Warrens.
    pub(super) sealer: Option<Sealer>,
    pub(super) dialect: Dialect,
    pub(super) proved: bool,
    pub(super) order: Order,
}

/// An action for the caller.
pub(super) enum Output {
    /// Send this to the mesh relay.
    Send(String),
    /// Take a session that has become a link.
    Opened(Box<NewLink>),
    /// Handle a payload that came over a link.
    Payload(Handle, Bytes),
    /// End a link, for this reason.
    Ended(Handle, String),
    /// A session with this peer has not become a link, for this reason.
    Failed(NodeId, String),
}

/// The sessions at one mesh relay.
pub(super) struct Sessions {
    machine: Arc<ThisMachine>,
    memory: Arc<Memory>,
    by_peer: HashMap<NodeId, Vec<RelaySession>>,
    count: usize,
    next: u64,
    deadlines: BTreeSet<(Instant, Handle)>,
    out: VecDeque<Output>,
}

impl Sessions {
    pub(super) fn new(machine: Arc<ThisMachine>, memory: Arc<Memory>) -> Self {
        Self {
            machine,
            memory,
            by_peer: HashMap::new(),
            count: 0,
            next: 0,
            deadlines: BTreeSet::new(),
            out: VecDeque::new(),
        }
    }

    /// The next output. Call this until it returns `None`.
    pub(super) fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`Sessions::expire`] must be called next.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Opens a session with a peer, unless one is being opened already. `Opened` or `Failed`
    /// follows. `id` must be new.
    pub(super) fn open(&mut self, now: Instant, peer: NodeId, who: RelayedPeer, id: &str) {
        let sessions = self.by_peer.get(&peer).map_or(&[][..], Vec::as_slice);
        if let Some(waiting) = sessions.iter().find(|session| !session.is_live()) {
            let handle = waiting.handle;
            if waiting.is_awaiting() && !self.is_warren(&peer, who) {
                // The stock peer has opened a session itself, and accepts no second one.
                let plain = |session: &mut RelaySession, cx: &mut Context<'_>| {
                    session.begin_plain(cx, Dialect::Wrapped)
                };
                self.step(handle, who, plain);
            }
            return;
        }
        if self.machine.settings.require_sealed && !self.is_warren(&peer, who) {
            let why = "it cannot seal links, and --require-sealed is set".to_owned();
            return self.out.push_back(Output::Failed(peer, why));
        }
        match self.add(now, peer, id, true, OPENED_WITHIN) {
            Some(handle) => self.say(handle, who, ForwardKind::RelayOpen),
            None => self.out.push_back(Output::Failed(peer, TOO_MANY.to_owned())),
        }
    }

    /// Handles a message of another node.
    pub(super) fn forward(
        &mut self,
        now: Instant,
        peer: NodeId,
        who: RelayedPeer,
        message: &Forward<'_>,
    ) {
        let handle = self.find(&peer, &message.session);
        match (message.kind, handle) {
            (ForwardKind::RelayOpen, Some(handle)) => self.opened_again(handle, who),
            (ForwardKind::RelayOpen, None) => self.opened(now, peer, who, &message.session),
            (ForwardKind::RelayReady, Some(handle)) => self.step(handle, who, RelaySession::ready),
            (ForwardKind::RelayData, Some(handle)) => self.data(handle, who, message),
            (ForwardKind::RelayData, None) => self.data_of_none(now, peer, who, message),
            (ForwardKind::RelayClose, Some(handle)) => {
                let reason =
                    words::reason(message).map_or_else(String::new, |said| format!(": {said}"));
                self.end(handle, format!("the other end closed the session{reason}"));
            }
            (ForwardKind::RelayReady, None) => {
                self.machine.counts.bad("relayReady of an unknown session");
            }
            // A close that crossed this end's own close, or came twice.
            _ => {}
        }
    }

    /// Ends the sessions of a peer that is no longer at the mesh relay.
    pub(super) fn gone(&mut self, peer: &NodeId, why: &str) {
        for handle in self.of(peer) {
            self.end(handle, why.to_owned());
        }
    }

    /// Ends a session because the mesh relay says that it does not exist, or has ended it. Only the
    /// session's id is given.
    pub(super) fn refused(&mut self, id: &str, why: &str) {
        let is = |session: &&RelaySession| session.id.eq_ignore_ascii_case(id);
        let found: Vec<_> =
            self.by_peer.values().flatten().filter(is).map(|session| session.handle).collect();
        for handle in found {
            self.end(handle, why.to_owned());
        }
    }

    /// Closes a session at this end, and tells the other end.
    pub(super) fn close(&mut self, handle: Handle, why: &str) {
        self.say_close(handle, why);
        self.end(handle, why.to_owned());
    }

    /// Ends the sessions whose time to become links is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((at, handle)) = self.deadlines.first().copied()
            && at <= now
        {
            self.deadlines.remove(&(at, handle));
            self.close(handle, "the session was not opened in time");
        }
    }

    /// Ends all sessions, because the connection to the mesh relay has ended.
    pub(super) fn lost(&mut self, why: &str) {
        let peers: Vec<NodeId> = self.by_peer.keys().copied().collect();
        for peer in peers {
            self.gone(&peer, why);
        }
    }

    /// All sessions.
    pub(super) fn all(&self) -> Vec<Handle> {
        self.by_peer.values().flatten().map(|session| session.handle).collect()
    }

    /// The session's id, as the opening end wrote it.
    pub(super) fn id(&self, handle: Handle) -> Option<Box<str>> {
        self.get(handle).map(|session| session.id.clone())
    }

    fn opened(&mut self, now: Instant, peer: NodeId, who: RelayedPeer, id: &str) {
        let warren = self.is_warren(&peer, who);
        if who.listed && !warren && self.machine.settings.require_sealed {
            return self.refuse(peer, id, session::SEALED_ONLY);
        }
        if warren && self.keeps_own(&peer) {
            // This end has the lower id, so the other end accepts this end's session.
            return;
        }
        let within = if warren || !who.listed { OPENED_WITHIN } else { STOCK_SPEAKS_WITHIN };
        match self.add(now, peer, id, false, within) {
            Some(handle) => self.say(handle, who, ForwardKind::RelayReady),
            None => self.refuse(peer, id, TOO_MANY),
        }
    }

    /// Whether both ends have opened a session at once, and this end's session stays. If the other
    /// end's stays, this end's is closed.
    fn keeps_own(&mut self, peer: &NodeId) -> bool {
        let sessions = self.by_peer.get(peer).map_or(&[][..], Vec::as_slice);
        let own = sessions.iter().find(|session| session.ours && !session.is_live());
        let Some(own) = own.map(|session| session.handle) else { return false };
        if self.machine.id() < *peer {
            return true;
        }
        self.say_close(own, "both ends opened a session at once");
        self.remove(own);
        false
    }

    /// Handles a repeated `relayOpen` of the other end, which may have lost the answer.
    fn opened_again(&mut self, handle: Handle, who: RelayedPeer) {
        match self.get(handle) {
            Some(session) if !session.ours => self.say(handle, who, ForwardKind::RelayReady),
            _ => self.machine.counts.bad("relayOpen of a session that this node opened"),
        }
    }

    fn data(&mut self, handle: Handle, who: RelayedPeer, message: &Forward<'_>) {
        match message.data() {
            Ok(data) => self.step(handle, who, |session, cx| session.data(cx, data)),
            Err(_) => self.machine.counts.bad("relayData without data"),
        }
    }

    /// Handles data of an unknown session. Stock nodes may send data without opening a session.
    fn data_of_none(
        &mut self,
        now: Instant,
        peer: NodeId,
        who: RelayedPeer,
        message: &Forward<'_>,
    ) {
        let Ok(data) = message.data() else {
            return self.machine.counts.bad("relayData without data");
        };
        let plain = data.first() == Some(&b'{');
        if !plain
            || !who.listed
            || self.is_warren(&peer, who)
            || self.machine.settings.require_sealed
        {
            self.machine.counts.bad("relayData of an unknown session");
            return self.refuse(peer, &message.session, "there is no such session");
        }
        match self.add(now, peer, &message.session, false, OPENED_WITHIN) {
            Some(handle) => self.step(handle, who, |session, cx| session.data(cx, data)),
            None => self.refuse(peer, &message.session, TOO_MANY),
        }
    }

    /// Lets a session take a step, and closes the session if the step fails.
    fn step(
        &mut self,
        handle: Handle,
        who: RelayedPeer,
        take: impl FnOnce(&mut RelaySession, &mut Context<'_>) -> Result<(), End>,
    ) {
        let warren = self.is_warren(&handle.peer, who);
        let sessions = self.by_peer.get_mut(&handle.peer);
        let session = sessions.and_then(|all| all.iter_mut().find(|it| it.handle == handle));
        let Some(session) = session else { return };
        let until = session.until;
        let wants_passcode = match who.warren {
            Some(seals) => seals.psk,
            // It was known as a Warren before. Most likely it has the same passcode as this node,
            // or none if this node has none.
            None => self.machine.psk.is_some(),
        };
        let (machine, memory) = (&*self.machine, &*self.memory);
        let mut cx = Context { machine, memory, warren, wants_passcode, out: &mut self.out };
        let taken = take(session, &mut cx);
        // A session that has become a link has no deadline.
        if let (Some(until), None) = (until, session.until) {
            self.deadlines.remove(&(until, handle));
        }
        if let Err(End(why)) = taken {
            self.close(handle, &why);
        }
    }

    fn say(&mut self, handle: Handle, who: RelayedPeer, kind: ForwardKind) {
        let say = move |session: &mut RelaySession, cx: &mut Context<'_>| {
            session.say(cx, kind);
            Ok(())
        };
        self.step(handle, who, say);
    }

    fn say_close(&mut self, handle: Handle, why: &str) {
        let Some(id) = self.id(handle) else { return };
        self.refuse(handle.peer, &id, why);
    }

    fn refuse(&mut self, peer: NodeId, id: &str, why: &str) {
        let own = self.machine.id();
        self.out.push_back(Output::Send(words::close(&own, &peer, id, why)));
    }

    fn end(&mut self, handle: Handle, why: String) {
        let Some(session) = self.remove(handle) else { return };
        self.out.push_back(match session.is_live() {
            true => Output::Ended(handle, why),
            false => Output::Failed(handle.peer, why),
        });
    }

    fn add(
        &mut self,
        now: Instant,
        peer: NodeId,
        id: &str,
        ours: bool,
        within: Duration,
    ) -> Option<Handle> {
        let of_peer = self.by_peer.get(&peer).map_or(0, Vec::len);
        if self.count >= MAX_SESSIONS || of_peer >= MAX_OF_PEER {
            return None;
        }
        self.next += 1;
        self.count += 1;
        let (handle, until) = (Handle { peer, number: self.next }, now + within);
        self.deadlines.insert((until, handle));
        self.by_peer.entry(peer).or_default().push(RelaySession::new(handle, id, ours, until));
        Some(handle)
    }

    fn remove(&mut self, handle: Handle) -> Option<RelaySession> {
        let sessions = self.by_peer.get_mut(&handle.peer)?;
        let at = sessions.iter().position(|session| session.handle == handle)?;
        let session = sessions.swap_remove(at);
        if sessions.is_empty() {
            self.by_peer.remove(&handle.peer);
        }
        if let Some(until) = session.until {
            self.deadlines.remove(&(until, handle));
        }
        self.count -= 1;
        Some(session)
    }

    fn find(&self, peer: &NodeId, id: &str) -> Option<Handle> {
        let sessions = self.by_peer.get(peer)?;
        let found = sessions.iter().find(|session| session.id.eq_ignore_ascii_case(id))?;
        Some(found.handle)
    }

    fn get(&self, handle: Handle) -> Option<&RelaySession> {
        self.by_peer.get(&handle.peer)?.iter().find(|session| session.handle == handle)
    }

    fn of(&self, peer: &NodeId) -> Vec<Handle> {
        let sessions = self.by_peer.get(peer).map_or(&[][..], Vec::as_slice);
        sessions.iter().map(|session| session.handle).collect()
    }

    fn is_warren(&self, peer: &NodeId, who: RelayedPeer) -> bool {
        who.warren.is_some() || self.memory.was_sealed(peer)
    }
}
