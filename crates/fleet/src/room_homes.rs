//! Which server orders a room's events: the home of the room.
//!
//! The home is noted in a record that all servers see, and each change of it is a compare-and-set there,
//! so one of several claims wins. A room's events are numbered within an epoch: the epoch has a number and
//! a home, and no two servers order events under one epoch.
//!
//! - The server that creates a room claims its first epoch.
//! - A home that is gone is followed by the next start of the same server if that is there, or else by the
//!   live server with the lowest id: it claims the next number. A server that comes back later leaves the
//!   room where it is.
//! - Where the record cannot be reached, both sides go on: a home for its own participants, and a server
//!   that has lost the home and has participants under a next number of its own.
//! - When the sides meet, the higher epoch goes into the record, and who ordered under a lower one yields.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use base::RoomId;

use crate::server::{ServerId, ServerName};

/// After a connection, how long a home that is not seen may still come: each fellow shows itself in less.
pub const SETTLING: Duration = Duration::from_secs(3);
/// How long a home must be gone before it is followed. A server that was stopped takes all fellows for gone
/// until it has read what came meanwhile.
pub const ADOPTION: Duration = Duration::from_secs(1);
/// After what time a claim without an answer is made again.
pub const CLAIM_AGAIN: Duration = Duration::from_secs(1);
/// The most rooms that are known. Others are not ordered here.
pub const MOST_ROOMS: usize = 65_536;

/// A time in which one server orders the events of a room. The greater is the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch {
    /// Its number; the first is 1.
    pub number: u64,
    /// The server that orders.
    pub home: ServerId,
}

/// The content of a room's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The present epoch.
    pub epoch: Epoch,
    /// The name of its home.
    pub name: ServerName,
}

/// One event. Inputs about rooms that are not known are ignored.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A room was created here.
    Created { room: RoomId },
    /// A room's record was seen.
    Seen { room: RoomId, placement: Placement, revision: u64 },
    /// A room was closed.
    Closed { room: RoomId },
    /// Whether the room has participants or watchers here.
    Used { room: RoomId, is_used: bool },
    /// A fellow is there.
    Joined { fellow: ServerId, name: ServerName },
    /// A fellow is gone.
    Left { fellow: ServerId },
    /// The records can be reached, and all that there are have been shown since the connection. Rooms whose
    /// records were not have none any more: records may be lost, and revisions may begin again.
    Connected,
    /// The records cannot be reached. The next that are shown are those of another connection.
    Disconnected,
    /// A claim has won: it is in the record.
    Claimed { room: RoomId, epoch: Epoch, revision: u64 },
    /// A claim has lost: the record was another one, or none.
    ClaimLost { room: RoomId, found: Option<(Placement, u64)> },
}

/// One action, to be carried out in order.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Write the record of the room, if its revision is still the expected one; 0: if there is none.
    /// Answer with [`Input::Claimed`] or [`Input::ClaimLost`]; without an answer the claim is made again.
    Claim { room: RoomId, epoch: Epoch, expected_revision: u64 },
    /// This server orders the room's events from now on, under this epoch.
    Home { room: RoomId, epoch: Epoch },
    /// This server orders the room's events no more: they are ordered under this epoch.
    Yield { room: RoomId, to: Epoch },
    /// A fellow orders the room's events from now on.
    Follow { room: RoomId, epoch: Epoch },
}

/// Where a room is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// Here.
    Here(Epoch),
    /// At a fellow.
    Fellow(Epoch),
    /// Nowhere at the moment.
    Nowhere,
}

#[derive(Debug, Default)]
struct Room {
    /// The epoch under which this server orders.
    own: Option<Epoch>,
    /// The content of the record, and its revision.
    recorded: Option<Epoch>,
    revision: u64,
    /// The greatest epoch that was ever seen, with the name of its home.
    latest: Option<Placement>,
    /// The fellow's epoch that was last put out.
    followed: Option<Epoch>,
    is_used: bool,
    /// Whether its record was shown since the last connection.
    is_shown: bool,
}

/// The homes of all rooms, as one server sees them.
#[derive(Debug)]
pub struct RoomHomes {
    id: ServerId,
    name: ServerName,
    fellows: BTreeMap<ServerId, ServerName>,
    /// Since when the records can be reached.
    connected: Option<Instant>,
    rooms: BTreeMap<RoomId, Room>,
    /// The claims without an answer, and when each is made again.
    claims: BTreeMap<RoomId, (Epoch, Instant)>,
    /// When homes that are not seen count as gone.
    settled_at: Option<Instant>,
    outputs: VecDeque<Output>,
}

impl RoomHomes {
    /// A server that knows no room.
    pub fn new(id: ServerId, name: ServerName) -> Self {
        Self {
            id,
            name,
            fellows: BTreeMap::new(),
            connected: None,
            rooms: BTreeMap::new(),
            claims: BTreeMap::new(),
            settled_at: None,
            outputs: VecDeque::new(),
        }
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Created { room } => self.created(now, &room),
            Input::Seen { room, placement, revision } => self.seen(now, &room, placement, revision),
            Input::Closed { room } => self.closed(&room),
            Input::Used { room, is_used } => self.used(now, &room, is_used),
            Input::Joined { fellow, name } => {
                self.fellows.insert(fellow, name);
                self.consider_all(now);
            }
            Input::Left { fellow } => {
                self.fellows.remove(&fellow);
                if self.connected.is_some() {
                    self.settled_at = self.settled_at.max(Some(now + ADOPTION));
                }
                self.consider_all(now);
            }
            Input::Connected => self.connect(now),
            Input::Disconnected => self.disconnect(),
            Input::Claimed { room, epoch, revision } => self.claimed(now, &room, epoch, revision),
            Input::ClaimLost { room, found } => self.claim_lost(now, &room, found),
        }
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.settled_at.is_some_and(|at| at <= now) {
            self.settled_at = None;
            self.consider_all(now);
        }
        let due = self.claims.iter().filter(|(_, (_, at))| *at <= now);
        let due: Vec<_> = due.map(|(room, _)| room.clone()).collect();
        for room in due {
            self.claims.remove(&room);
            self.consider(now, &room);
        }
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`RoomHomes::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let claims = self.claims.values().map(|(_, at)| *at);
        claims.chain(self.settled_at).min()
    }

    /// Where a room is ordered now.
    pub fn home(&self, room: &RoomId) -> Home {
        let Some(it) = self.rooms.get(room) else { return Home::Nowhere };
        match (it.own, it.followed) {
            (Some(epoch), _) => Home::Here(epoch),
            (None, Some(epoch)) if self.is_live(epoch.home) => Home::Fellow(epoch),
            _ => Home::Nowhere,
        }
    }

    /// The number of rooms that are known.
    pub fn len(&self) -> usize {
        self.rooms.len()
    }

    /// Whether no room is known.
    pub fn is_empty(&self) -> bool {
        self.rooms.is_empty()
    }

    fn created(&mut self, now: Instant, room: &RoomId) {
        let epoch = Epoch { number: 1, home: self.id };
        let Some(it) = self.room(room).filter(|it| it.latest.is_none()) else { return };
        it.own = Some(epoch);
        let name = self.name.clone();
        self.note(room, Placement { epoch, name });
        self.outputs.push_back(Output::Home { room: room.clone(), epoch });
        self.consider(now, room);
    }

    fn seen(&mut self, now: Instant, room: &RoomId, placement: Placement, revision: u64) {
        let Some(it) = self.room(room) else { return };
        (it.recorded, it.revision) = (Some(placement.epoch), revision);
        it.is_shown = true;
        self.note(room, placement);
        self.consider(now, room);
    }

    fn absent(&mut self, now: Instant, room: &RoomId) {
        if let Some(it) = self.rooms.get_mut(room) {
            (it.recorded, it.revision) = (None, 0);
            self.consider(now, room);
        }
    }

    fn closed(&mut self, room: &RoomId) {
        self.rooms.remove(room);
        self.claims.remove(room);
    }

    fn used(&mut self, now: Instant, room: &RoomId, is_used: bool) {
        if let Some(it) = self.rooms.get_mut(room) {
            it.is_used = is_used;
            self.consider(now, room);
        }
    }

    fn connect(&mut self, now: Instant) {
        if self.connected.is_none() {
            self.connected = Some(now);
            self.settled_at = Some(now + SETTLING);
            let lost = self.rooms.values_mut().filter(|it| !it.is_shown);
            lost.for_each(|it| (it.recorded, it.revision) = (None, 0));
            self.consider_all(now);
        }
    }

    fn disconnect(&mut self) {
        (self.connected, self.settled_at) = (None, None);
        self.claims.clear();
        self.rooms.values_mut().for_each(|it| it.is_shown = false);
    }

    fn claimed(&mut self, now: Instant, room: &RoomId, epoch: Epoch, revision: u64) {
        let connected = self.connected.is_some();
        let Some(it) = self.rooms.get_mut(room).filter(|_| connected) else { return };
        if epoch.home != self.id {
            return;
        }
        // A record that was seen meanwhile is newer.
        if revision > it.revision || it.recorded.is_none() {
            (it.recorded, it.revision) = (Some(epoch), revision);
        }
        self.claims.remove(room);
        let name = self.name.clone();
        self.note(room, Placement { epoch, name });
        self.consider(now, room);
    }

    fn claim_lost(&mut self, now: Instant, room: &RoomId, found: Option<(Placement, u64)>) {
        self.claims.remove(room);
        match found {
            Some((placement, revision)) => self.seen(now, room, placement, revision),
            None => self.absent(now, room),
        }
    }

    /// A room, known from now on; `None` if there are too many.
    fn room(&mut self, room: &RoomId) -> Option<&mut Room> {
        if self.rooms.len() >= MOST_ROOMS && !self.rooms.contains_key(room) {
            return None;
        }
        Some(self.rooms.entry(room.clone()).or_default())
    }

    /// Notes an epoch that exists.
    fn note(&mut self, room: &RoomId, placement: Placement) {
        let Some(it) = self.rooms.get_mut(room) else { return };
        if it.latest.as_ref().is_none_or(|latest| latest.epoch < placement.epoch) {
            it.latest = Some(placement);
        }
    }

    fn consider_all(&mut self, now: Instant) {
        let rooms: Vec<_> = self.rooms.keys().cloned().collect();
        rooms.iter().for_each(|room| self.consider(now, room));
    }

    /// Does what is to be done about a room after a change.
    fn consider(&mut self, now: Instant, room: &RoomId) {
        let Some(it) = self.rooms.get_mut(room) else { return };
        let Some(latest) = it.latest.clone() else { return };
        if let Some(own) = it.own
            && own < latest.epoch
            && latest.epoch.home != self.id
        {
            it.own = None;
            self.outputs.push_back(Output::Yield { room: room.clone(), to: latest.epoch });
        } else if latest.epoch.home == self.id && it.own != Some(latest.epoch) {
            // A claim of this start has won, whatever became of the answer.
            it.own = Some(latest.epoch);
            self.outputs.push_back(Output::Home { room: room.clone(), epoch: latest.epoch });
        }
        let own = it.own;
        match own {
            Some(own) => self.keep(now, room, own),
            None if self.is_live(latest.epoch.home) => self.follow(room, latest.epoch),
            None => self.adopt(now, room, &latest),
        }
    }

    /// Sees to it that the record says that this server is the home.
    fn keep(&mut self, now: Instant, room: &RoomId, own: Epoch) {
        let Some(it) = self.rooms.get(room) else { return };
        match it.recorded {
            Some(recorded) if recorded == own => _ = self.claims.remove(room),
            // Nobody else has claimed this number, which a record shows once.
            Some(recorded) if recorded.number >= own.number => {
                let number = recorded.number + 1;
                self.claim(now, room, Epoch { number, ..own });
            }
            _ => self.claim(now, room, own),
        }
    }

    fn follow(&mut self, room: &RoomId, epoch: Epoch) {
        self.claims.remove(room);
        if let Some(it) = self.rooms.get_mut(room).filter(|it| it.followed != Some(epoch)) {
            it.followed = Some(epoch);
            self.outputs.push_back(Output::Follow { room: room.clone(), epoch });
        }
    }

    /// The home is not there.
    fn adopt(&mut self, now: Instant, room: &RoomId, latest: &Placement) {
        let Some(it) = self.rooms.get_mut(room) else { return };
        let epoch = Epoch { number: latest.epoch.number + 1, home: self.id };
        if self.connected.is_some() {
            // Only servers that saw an epoch know that the record was set back.
            let set_back = it.recorded.is_some_and(|recorded| recorded < latest.epoch);
            let is_next = set_back || self.successor(latest) == self.id;
            if self.settled_at.is_none() && is_next {
                self.claim(now, room, epoch);
            }
        } else if it.is_used {
            it.own = Some(epoch);
            let name = self.name.clone();
            it.latest = Some(Placement { epoch, name });
            self.outputs.push_back(Output::Home { room: room.clone(), epoch });
        }
    }

    /// The server that follows a home that is gone.
    fn successor(&self, latest: &Placement) -> ServerId {
        let own = (&self.id, &self.name);
        let live = || self.fellows.iter().chain([own]);
        let same_name = live().filter(|(_, name)| **name == latest.name).map(|(id, _)| *id).min();
        let lowest = || live().map(|(id, _)| *id).min();
        same_name.or_else(lowest).unwrap_or(self.id)
    }

    fn claim(&mut self, now: Instant, room: &RoomId, epoch: Epoch) {
        let is_made = self.claims.get(room).is_some_and(|(other, _)| *other == epoch);
        let Some(it) = self.rooms.get(room).filter(|_| self.connected.is_some() && !is_made) else {
            return;
        };
        let expected_revision = it.revision;
        self.claims.insert(room.clone(), (epoch, now + CLAIM_AGAIN));
        self.outputs.push_back(Output::Claim { room: room.clone(), epoch, expected_revision });
    }

    fn is_live(&self, id: ServerId) -> bool {
        id == self.id || self.fellows.contains_key(&id)
    }
}
