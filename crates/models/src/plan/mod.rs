//! Which piece to ask of which peer. Pure: time and what happened come in, answers go out.
//!
//! Every peer has a window of pieces that are asked of it at once. One that answers faster empties its window
//! faster, and so gets more. One from which nothing comes is stalled: its pieces go to others, and it has to
//! answer one before it gets more. When nothing is left to be asked, the pieces asked last are asked of a
//! second peer, so that the end does not wait for the slowest.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
    vec,
};

/// How many pieces are asked of a peer at once.
pub const WINDOW: usize = 16;
/// After how long without any answer a peer that was asked is stalled.
pub const STALL: Duration = Duration::from_secs(30);
/// After this many stalls in a row a peer is dropped.
pub const MAX_STALLS: u32 = 3;
/// After this many wrong pieces a peer is dropped for good.
pub const MAX_CORRUPT: u32 = 3;
/// How many pieces that were asked of another are asked of a peer in the end, at once.
pub const MAX_SECOND: usize = 4;
/// The most peers that are remembered to have been let go for good.
pub const MAX_BANNED: usize = 1_024;

/// A piece of a file, by the file's place in the manifest and its own in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId {
    /// Which file.
    pub file: u32,
    /// Which piece of it.
    pub piece: u32,
}

/// Something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<P> {
    /// A peer that has the model can be asked.
    Joined(P),
    /// It cannot be asked any more.
    Left(P),
    /// It answered with the piece, which was checked and written.
    Arrived(P, PieceId),
    /// It answered with something else.
    Corrupt(P, PieceId),
}

/// The step that follows from an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to be done.
    Noted,
    /// The piece is the first of its kind.
    Accepted,
    /// The piece was there already, or never asked for.
    Repeated,
    /// The peer is let go: do not ask it any more.
    Dropped,
}

/// The plan of one download. `P` names a peer.
#[derive(Debug)]
pub struct Plan<P> {
    /// Never asked of anybody.
    fresh: vec::IntoIter<PieceId>,
    /// To be asked again.
    retries: BTreeSet<PieceId>,
    /// Asked of some peers, and not there yet.
    askers: BTreeMap<PieceId, BTreeSet<P>>,
    peers: BTreeMap<P, Peer>,
    banned: BTreeSet<P>,
}

/// The facts about a peer.
#[derive(Debug)]
struct Peer {
    /// Asked of it and not answered, and whether another was asked first. Some may be there from others
    /// meanwhile.
    open: BTreeMap<PieceId, bool>,
    /// Since when nothing came from it.
    since: Duration,
    stalls: u32,
    corrupt: u32,
}

impl Peer {
    fn new(now: Duration) -> Self {
        Self { open: BTreeMap::new(), since: now, stalls: 0, corrupt: 0 }
    }

    /// How many pieces are asked of it after another was.
    fn second(&self) -> usize {
        self.open.values().filter(|second| **second).count()
    }

    fn window(&self) -> usize {
        if self.stalls > 0 { 1 } else { WINDOW }
    }

    fn stalls_at(&self) -> Option<Duration> {
        (!self.open.is_empty()).then(|| self.since.saturating_add(STALL))
    }
}

impl<P: Ord + Clone> Plan<P> {
    /// A plan to get these pieces, each named once, in this order as far as it goes.
    pub fn new(missing: Vec<PieceId>) -> Self {
        Self {
            fresh: missing.into_iter(),
            retries: BTreeSet::new(),
            askers: BTreeMap::new(),
            peers: BTreeMap::new(),
            banned: BTreeSet::new(),
        }
    }

    /// Tells it what happened. After each event, peers may have room in their windows: see
    /// [`next_for`](Self::next_for).
    pub fn handle(&mut self, now: Duration, event: Event<P>) -> Verdict {
        match event {
            Event::Joined(peer) => self.joined(now, peer),
            Event::Left(peer) => {
                self.remove(&peer);
                Verdict::Noted
            }
            Event::Arrived(peer, piece) => self.arrived(now, &peer, piece),
            Event::Corrupt(peer, piece) => self.corrupt(now, &peer, piece),
        }
    }

    /// The next piece to ask of this peer, which is then taken as asked; `None` when its window is full or
    /// there is nothing for it.
    pub fn next_for(&mut self, now: Duration, name: &P) -> Option<PieceId> {
        let peer = self.peers.get(name).filter(|peer| peer.open.len() < peer.window())?;
        let ask_second = peer.second() < MAX_SECOND && peer.stalls == 0;
        let next = self.retries.pop_first().or_else(|| self.fresh.next());
        let second = next.is_none();
        let piece = match next {
            None if ask_second => self.second_for(name)?,
            next => next?,
        };
        self.askers.entry(piece).or_default().insert(name.clone());
        let peer = self.peers.get_mut(name)?;
        if peer.open.is_empty() {
            peer.since = now;
        }
        peer.open.insert(piece, second);
        Some(piece)
    }

    /// Looks for peers that are stalled, and tells those that are let go for it. They may join again.
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<P> {
        let stalled = |(name, peer): (&P, &Peer)| {
            peer.stalls_at().is_some_and(|at| at <= now).then(|| name.clone())
        };
        let stalled: Vec<P> = self.peers.iter().filter_map(stalled).collect();
        stalled.into_iter().filter(|name| self.stalled(now, name)).collect()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is wanted at the latest.
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.peers.values().filter_map(Peer::stalls_at).min()
    }

    /// The peers that can be asked.
    pub fn peers(&self) -> impl Iterator<Item = &P> {
        self.peers.keys()
    }

    /// How many pieces were asked of this peer and not answered.
    pub fn open(&self, peer: &P) -> usize {
        self.peers.get(peer).map_or(0, |peer| peer.open.len())
    }

    /// How many pieces are missing.
    pub fn missing(&self) -> usize {
        self.fresh.len() + self.retries.len() + self.askers.len()
    }

    /// Whether this piece was requested and is missing; any other piece need not be checked.
    pub fn wants(&self, piece: PieceId) -> bool {
        self.askers.contains_key(&piece) || self.retries.contains(&piece)
    }

    /// Whether all pieces are there.
    pub fn is_done(&self) -> bool {
        self.missing() == 0
    }

    fn joined(&mut self, now: Duration, peer: P) -> Verdict {
        if self.banned.contains(&peer) {
            return Verdict::Dropped;
        }
        self.peers.entry(peer).or_insert_with(|| Peer::new(now));
        Verdict::Noted
    }

    fn arrived(&mut self, now: Duration, name: &P, piece: PieceId) -> Verdict {
        let wanted = self.askers.remove(&piece).is_some() | self.retries.remove(&piece);
        let answered = self.answered(now, name, piece);
        if let Some(peer) = self.peers.get_mut(name).filter(|_| answered || wanted) {
            (peer.since, peer.stalls) = (now, 0);
        }
        if wanted { Verdict::Accepted } else { Verdict::Repeated }
    }

    fn corrupt(&mut self, now: Duration, name: &P, piece: PieceId) -> Verdict {
        self.answered(now, name, piece);
        self.give_back(name, piece);
        let Some(peer) = self.peers.get_mut(name) else { return Verdict::Noted };
        peer.corrupt += 1;
        if peer.corrupt < MAX_CORRUPT {
            return Verdict::Noted;
        }
        self.remove(name);
        if self.banned.len() >= MAX_BANNED {
            self.banned.pop_first();
        }
        self.banned.insert(name.clone());
        Verdict::Dropped
    }

    /// Takes a piece out of the peer's window; tells whether it was in it.
    fn answered(&mut self, now: Duration, name: &P, piece: PieceId) -> bool {
        let Some(peer) = self.peers.get_mut(name) else { return false };
        let was_open = peer.open.remove(&piece).is_some();
        if was_open {
            peer.since = now;
        }
        was_open
    }

    /// This peer will not bring the piece: if nobody else was asked, somebody has to be.
    fn give_back(&mut self, name: &P, piece: PieceId) {
        let Some(askers) = self.askers.get_mut(&piece) else { return };
        askers.remove(name);
        if askers.is_empty() {
            self.askers.remove(&piece);
            self.retries.insert(piece);
        }
    }

    /// Takes all that was asked of it back. Tells whether it is let go.
    fn stalled(&mut self, now: Duration, name: &P) -> bool {
        let Some(peer) = self.peers.get_mut(name) else { return false };
        let open = std::mem::take(&mut peer.open);
        (peer.since, peer.stalls) = (now, peer.stalls + 1);
        let gone = peer.stalls >= MAX_STALLS;
        open.into_keys().for_each(|piece| self.give_back(name, piece));
        if gone {
            self.peers.remove(name);
        }
        gone
    }

    fn remove(&mut self, name: &P) {
        let open = self.peers.remove(name).map(|peer| peer.open).unwrap_or_default();
        open.into_keys().for_each(|piece| self.give_back(name, piece));
    }

    /// A piece that one other peer was asked for.
    fn second_for(&self, name: &P) -> Option<PieceId> {
        let once = |(piece, askers): (&PieceId, &BTreeSet<P>)| {
            (askers.len() == 1 && !askers.contains(name)).then_some(*piece)
        };
        self.askers.iter().find_map(once)
    }
}

#[cfg(test)]
mod tests;
