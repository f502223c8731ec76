//! Writes of this member, and what it adopts from plain peers.

use std::sync::Arc;

use crate::{
    clock,
    dot::Dot,
    entry::{
        Entry, Key, Kind, MOST_EARLIER, MOST_ID_BYTES, MOST_NODE_BYTES, MOST_NUMBER, NodeId, Rank,
        Stamp, Version,
    },
    held::AHEAD,
    input::{Change, Refused},
    message::Message,
    own::has_moved,
    replica::Replica,
    table::Layer,
};

/// A version about to be written. Its dot is added last.
pub(crate) struct Draft {
    pub(crate) rank: Rank,
    pub(crate) dead: bool,
    pub(crate) line: Line,
    pub(crate) adopted: bool,
    pub(crate) owner: NodeId,
    pub(crate) value: Arc<str>,
}

/// The lives from which a version descends.
#[derive(Default)]
pub(crate) struct Line {
    /// The birth of the life that the version continues; `None` if the version begins one.
    birth: Option<Dot>,
    /// The births of earlier lives.
    earlier: Vec<Dot>,
}

impl Line {
    fn same_life(entry: &Entry) -> Self {
        Self { birth: Some(entry.birth), earlier: entry.earlier.clone() }
    }

    fn next_life(before: Option<&Entry>) -> Self {
        let lives = before.map(|entry| entry.earlier.iter().chain([&entry.birth]));
        let lives: Vec<Dot> = lives.into_iter().flatten().copied().collect();
        let most = lives.len().min(MOST_EARLIER);
        Self { birth: None, earlier: lives[lives.len() - most..].to_vec() }
    }
}

impl Replica {
    pub(crate) fn write(
        &mut self,
        key: &Key,
        owner: NodeId,
        value: Arc<str>,
        change: Change,
    ) -> Result<(), Refused> {
        self.check_size(key, &owner, &value)?;
        if key.kind == Kind::SESSION {
            self.check_owner(key, &owner, change)?;
            return self.write_session(key, &owner, value, change);
        }
        let top = self.table.top(key).cloned();
        let begins = match &top {
            Some(top) if top.dead && !(key.kind == Kind::MEMBER && change == Change::Begin) => {
                return Err(Refused::Deleted);
            }
            Some(top) => top.dead,
            None => false,
        };
        let life = match &top {
            Some(top) if !begins => top.rank.life,
            _ if key.kind == Kind::MEMBER && change == Change::Begin => self.next_generation(0),
            _ => 0,
        };
        let version = Version::Stamp(self.next_stamp(key));
        let draft = Draft {
            rank: Rank { moves: 0, life, version },
            dead: false,
            line: match &top {
                Some(top) if !begins => Line::same_life(top),
                _ => Line::next_life(top.as_deref()),
            },
            adopted: top.is_some_and(|top| top.adopted),
            owner,
            value,
        };
        self.write_draft(key, draft)
    }

    fn check_owner(&self, key: &Key, owner: &NodeId, change: Change) -> Result<(), Refused> {
        let shown = self.get(key);
        match change {
            Change::Move if shown.is_none() => Err(Refused::Unknown),
            Change::Move => Ok(()),
            _ if *owner != self.config.node => Err(Refused::Foreign(owner.clone())),
            _ => match (shown.filter(|shown| shown.owner != *owner), self.own.get(key)) {
                (Some(shown), Some(own)) if !has_moved(own, shown, owner) => Ok(()),
                (Some(shown), _) => Err(Refused::Foreign(shown.owner.clone())),
                (None, _) => Ok(()),
            },
        }
    }

    /// Writes a session above everything that is known of it.
    ///
    /// A new life has the number of its first generation. One more than the last known life would
    /// not do: the real last life may have been dropped with its tombstone, and this disk may be an
    /// old copy that never knew of it. A move begins a new life, too. Otherwise a member that takes
    /// the former owner for lost at the same moment, and deletes the session, would delete it at
    /// its new owner.
    pub(crate) fn write_session(
        &mut self,
        key: &Key,
        owner: &NodeId,
        value: Arc<str>,
        change: Change,
    ) -> Result<(), Refused> {
        let (top, own) = (self.table.top(key).cloned(), self.own.get(key).cloned());
        let going_on = top.as_ref().filter(|top| !top.dead && change != Change::Move);
        let known = || top.iter().chain(&own);
        let moves = known().map(|entry| entry.rank.moves).max().unwrap_or_default();
        let moves = moves + u64::from(change == Change::Move);
        let above = known().map(|entry| entry.generation().max(entry.rank.life)).max();
        let generation = self.next_generation(above.unwrap_or_default());
        let life = going_on.map_or(generation, |top| top.rank.life);
        let line = match going_on {
            Some(top) => Line::same_life(top),
            None => Line::next_life(known().next().map(|entry| &**entry)),
        };
        let draft = Draft {
            rank: Rank { moves, life, version: Version::Generation(generation) },
            dead: false,
            line,
            adopted: going_on.is_some_and(|top| top.adopted),
            owner: owner.clone(),
            value,
        };
        self.write_draft(key, draft)?;
        let written = self.get(key).filter(|entry| entry.owner == self.config.node).cloned();
        match written {
            Some(entry) => self.own.insert(key.clone(), entry),
            None => self.own.remove(key),
        };
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: &Key) -> Result<(), Refused> {
        let was_own = self.own.remove(key).is_some();
        let Some(top) = self.table.top(key).filter(|top| !top.dead).cloned() else {
            return if was_own { Ok(()) } else { Err(Refused::Unknown) };
        };
        let version = match &top.rank.version {
            Version::Generation(old) => Version::Generation(self.next_generation(*old)),
            Version::Stamp(_) => Version::Stamp(self.next_stamp(key)),
        };
        let draft = Draft {
            rank: Rank { version, ..top.rank },
            dead: true,
            line: Line::same_life(&top),
            adopted: top.adopted,
            owner: top.owner.clone(),
            value: "".into(),
        };
        self.write_draft(key, draft)
    }

    /// Adopts what a plain peer said: it is written under a dot of this member, with the peer's
    /// rank. Two members that are linked to the peer write equal ranks, and the greater dot wins.
    /// That does no harm, since the value is the same.
    ///
    /// Each generation of a plain peer's session is a life of its own. By the peers' protocol a
    /// higher generation wins over a delete. As a life of its own it does so wherever the two meet,
    /// whether or not the tombstone was here when this was written.
    pub(crate) fn adopt(
        &mut self,
        key: &Key,
        owner: NodeId,
        version: Version,
        value: Arc<str>,
    ) -> Result<(), Refused> {
        self.check_size(key, &owner, &value)?;
        self.check_version(&version)?;
        if self.own.contains_key(key) {
            return Err(Refused::Foreign(self.config.node.clone()));
        }
        let life = match &version {
            Version::Generation(generation) => *generation,
            Version::Stamp(_) => 0,
        };
        let rank = Rank { moves: 0, life, version };
        let top = self.table.top(key).cloned();
        if let Some(top) = &top
            && !is_above(&rank, top)
        {
            return if top.dead { Err(Refused::Deleted) } else { Ok(()) };
        }
        let same_life = top.filter(|top| !top.dead && top.rank.life == life);
        let line = same_life.map_or_else(Line::default, |top| Line::same_life(&top));
        self.write_draft(key, Draft { rank, dead: false, line, adopted: true, owner, value })
    }

    fn check_version(&self, version: &Version) -> Result<(), Refused> {
        let latest_ms = self.time_ms() + AHEAD.as_secs() * 1_000;
        let is_sound = match version {
            Version::Generation(generation) => *generation < MOST_NUMBER,
            Version::Stamp(stamp) => stamp.wall_ms <= latest_ms,
        };
        if is_sound { Ok(()) } else { Err(Refused::Time) }
    }

    fn write_draft(&mut self, key: &Key, draft: Draft) -> Result<(), Refused> {
        let Draft { rank, dead, line, adopted, owner, value } = draft;
        let seen = self.knowledge.get(self.incarnation).map_or(0, |record| record.seen.max());
        let dot = Dot::new(self.incarnation, seen + 1);
        let (birth, earlier) = (line.birth.unwrap_or(dot), line.earlier);
        let entry = Entry { rank, dead, dot, birth, earlier, adopted, owner, value };
        if !self.fits(Layer::Present, key, &entry) {
            return Err(Refused::Full);
        }
        let entry = Arc::new(entry);
        self.note(dot);
        self.put_version(Layer::Present, key, entry.clone());
        self.send_delta(key, &entry);
        Ok(())
    }

    fn send_delta(&mut self, key: &Key, entry: &Arc<Entry>) {
        let links: Vec<_> = self.links.keys().copied().collect();
        for link in links {
            self.send(link, Message::Delta { key: key.clone(), entry: entry.clone() });
        }
    }

    fn check_size(&self, key: &Key, owner: &NodeId, value: &str) -> Result<(), Refused> {
        let limits = [
            (key.id.len(), MOST_ID_BYTES),
            (owner.as_str().len(), MOST_NODE_BYTES),
            (value.len(), self.config.limits.value_bytes),
        ];
        match limits.into_iter().find(|(length, limit)| length > limit) {
            Some((_, limit)) => Err(Refused::TooLarge { limit }),
            None => Ok(()),
        }
    }

    /// A generation above `above` and above every one that this member ever used. It is made from
    /// the time, so this holds even if the disk is an old copy that lacks the last used one. The
    /// later of the own clock and the cluster's time counts, since only a step back would do harm.
    fn next_generation(&mut self, above: u64) -> u64 {
        let time = self.time().max(self.wall);
        let time_us = u64::try_from(time.as_micros()).unwrap_or_default();
        let next = self.generation.max(above).saturating_add(1).max(time_us);
        self.generation = next.min(MOST_NUMBER - 1);
        self.outbox.changed().generation = true;
        self.generation
    }

    /// A stamp above that of the present version. A held version does not count, since this write
    /// would then be as far ahead as that one.
    fn next_stamp(&self, key: &Key) -> Stamp {
        let present = self.table.present(key).map(|present| &present.rank.version);
        let replaced = match present {
            Some(Version::Stamp(stamp)) => Some(stamp),
            _ => None,
        };
        clock::stamp(self.time(), replaced, self.config.node.clone())
    }
}

/// Whether a live version of this rank is above `other`, before their dots are compared.
fn is_above(rank: &Rank, other: &Entry) -> bool {
    (rank.life, false, &rank.version) > (other.rank.life, other.dead, &other.rank.version)
}
