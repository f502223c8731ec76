//! Objects: their keys, their versions, and which of two versions is the greater.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{bound, dot::Dot};

/// The longest id of a member, in bytes.
pub const MOST_NODE_BYTES: usize = 128;
/// The longest id of an object, in bytes.
pub const MOST_ID_BYTES: usize = 256;
/// The most earlier lives that a version remembers. Births of lives before these have long been
/// noted by every member.
pub const MOST_EARLIER: usize = 8;
/// The longest value, in bytes.
pub const MOST_VALUE_BYTES: usize = 192 * 1024;
/// The bound of generations, lives and counts of moves. JSON numbers are exact below it.
pub const MOST_NUMBER: u64 = 1 << 53;

/// The id of a member of the cluster, as it is stored on that member's disk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(#[serde(deserialize_with = "bound::text::<_, MOST_NODE_BYTES>")] Arc<str>);

impl NodeId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for NodeId {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for NodeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of an object. Kinds that this version does not know are kept and passed on, so that an
/// older member does not lose a newer one's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Kind(pub u16);

impl Kind {
    /// A member of the cluster. Written by itself; any member may delete it.
    pub const MEMBER: Self = Self(1);
    /// A session. Written by its owner only.
    pub const SESSION: Self = Self(2);
    /// A project. Written by any member.
    pub const PROJECT: Self = Self(3);
    /// A team. Written by its owner; any member may delete it.
    pub const TEAM: Self = Self(4);
}

/// The name of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its id, unique in its kind.
    #[serde(deserialize_with = "bound::text::<_, MOST_ID_BYTES>")]
    pub id: Arc<str>,
}

impl Key {
    /// The name of an object of this kind.
    pub fn new(kind: Kind, id: impl Into<Arc<str>>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.0, self.id)
    }
}

/// When a version was written, by the writer's clock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Tells writes of one millisecond apart. It is below a million, so that it can be shown as the
    /// nanoseconds of a date.
    pub counter: u32,
    /// The writer.
    pub node: NodeId,
}

/// The part of a rank that grows with each write of one life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Version {
    /// For sessions, which have one writer: a number that the writer counts up.
    Generation(u64),
    /// For all other kinds.
    Stamp(Stamp),
}

/// The place of a version among those of its object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// How often the session moved to another owner; 0 for all other kinds. It does not decide
    /// which version is greater, since a member may not know of a move. It tells a former owner
    /// that its versions no longer count.
    pub moves: u64,
    /// The number of the object's life. A session begins a new life after a delete and with each
    /// move; a life of a session has the number of its first generation. A member's first life is
    /// 0, and later ones are numbered like those of sessions. Always 0 for kinds whose delete is
    /// final.
    pub life: u64,
    /// The place among the versions of this life.
    pub version: Version,
}

/// One version of an object: a write, or a delete.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place among the versions of its object.
    pub rank: Rank,
    /// Whether it is a delete. Such an entry is called a tombstone.
    pub dead: bool,
    /// The write's name.
    pub dot: Dot,
    /// The name of the object's first write; for a session, of the first write of this life. Later
    /// versions keep it. A member that noted this write, and has no entry under the key, knows that
    /// the object was deleted, even if it never saw this version. Otherwise a write made at the
    /// same time as a delete would bring the object back once the tombstone is dropped.
    pub birth: Dot,
    /// The births of earlier lives, the latest last. When the tombstone of this life is dropped,
    /// they are noted with it, so that versions of those lives are known to be dead, too.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_EARLIER>")]
    pub earlier: Vec<Dot>,
    /// Whether it was adopted: a plain peer, which does not take part in replication, said it
    /// first.
    pub adopted: bool,
    /// The member that runs the session, holds the project's files or keeps the team.
    pub owner: NodeId,
    /// The object as JSON text; empty in a tombstone.
    #[serde(deserialize_with = "bound::text::<_, MOST_VALUE_BYTES>")]
    pub value: Arc<str>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rank { moves, life, version } = &self.rank;
        let number = self.wall_ms().unwrap_or_else(|| self.generation());
        let kind = if matches!(version, Version::Stamp(_)) { "at" } else { "generation" };
        let value = if self.dead { "dead" } else { &self.value };
        write!(
            f,
            "{:?} born {:?} of {} ({moves} moves, life {life}, {kind} {number}): {value}",
            self.dot, self.birth, self.owner
        )
    }
}

impl Entry {
    /// Whether this version wins over `other` of the same object.
    ///
    /// A delete wins over every version of its life, whatever their stamps. If the times decided,
    /// the winner would depend on whether the tombstone had already been dropped. The dot is
    /// compared last, so that any two versions have an order and all members agree on it.
    pub fn beats(&self, other: &Self) -> bool {
        self.place() > other.place()
    }

    fn place(&self) -> (u64, bool, &Version, Dot) {
        (self.rank.life, self.dead, &self.rank.version, self.dot)
    }

    /// The writer's clock when it wrote this, in milliseconds since 1970.
    pub fn wall_ms(&self) -> Option<u64> {
        match &self.rank.version {
            Version::Generation(_) => None,
            Version::Stamp(stamp) => Some(stamp.wall_ms),
        }
    }

    /// The member that wrote this, for versions with a stamp.
    pub fn writer(&self) -> Option<&NodeId> {
        match &self.rank.version {
            Version::Generation(_) => None,
            Version::Stamp(stamp) => Some(&stamp.node),
        }
    }

    /// The generation of a session; 0 for other kinds.
    pub fn generation(&self) -> u64 {
        match &self.rank.version {
            Version::Generation(generation) => *generation,
            Version::Stamp(_) => 0,
        }
    }

    /// Whether every number is in range.
    pub(crate) fn is_sound(&self) -> bool {
        let version = match &self.rank.version {
            Version::Generation(generation) => *generation,
            Version::Stamp(stamp) => stamp.wall_ms,
        };
        let numbers =
            [self.rank.moves, self.rank.life, version, self.dot.counter, self.birth.counter];
        numbers.iter().all(|number| *number < MOST_NUMBER)
            && self.dot.counter > 0
            && self.birth.counter > 0
            && self.earlier.iter().all(|birth| (1..MOST_NUMBER).contains(&birth.counter))
    }
}
