//! The messages that members send each other about their replicas.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    bound,
    config::MOST_INCARNATIONS,
    context::{Context, Seen},
    dot::{Dot, Incarnation},
    entry::{Entry, Key, NodeId},
    print::BUCKETS,
};

/// The longest message, in bytes. The longest one that is written is a batch of 256 KiB that ends
/// with an entry of 192 KiB and the largest context.
const MOST_BYTES: usize = 1024 * 1024;
/// The most members that a digest names.
pub(crate) const MOST_MEMBERS: usize = 1_024;
/// The most retired incarnations that a pull hands over.
const MOST_RETIRED: usize = 65_536;
/// The most entries or keys of one message.
pub(crate) const MOST_ENTRIES: usize = 4_096;

/// One message between two members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The sender's noted writes. The receiver pulls the writes that it lacks.
    Digest(Box<Digest>),
    /// The sender has noted writes that the receiver may not have.
    Hint(LargestDots),
    /// The sender's own write, sent when it was made.
    Delta {
        /// The object.
        key: Key,
        /// The version.
        entry: Arc<Entry>,
    },
    /// The receiver is to send what the sender lacks.
    Pull(Pull),
    /// A batch arrived, and the receiver is to send another.
    More {
        /// The pull.
        id: u64,
        /// The number of the batch.
        batch: u32,
    },
    /// A part of the answer to a pull.
    Batch(Box<Batch>),
    /// The pull cannot go on, since something was dropped meanwhile. The asker is to begin again.
    Cut {
        /// The pull.
        id: u64,
    },
    /// The prints of all buckets of keys. Sent when contexts are equal and prints are not.
    Buckets(#[serde(deserialize_with = "bound::list::<_, _, BUCKETS>")] Vec<u128>),
    /// The keys and dots of buckets whose prints differ.
    Keys(Box<KeyList>),
    /// The sender's version of an object. The receiver has noted that version, and has another one.
    Repair {
        /// The object.
        key: Key,
        /// The version.
        entry: Arc<Entry>,
    },
}

/// The writes that a member has noted, and what it knows of the other members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The sender's incarnation.
    pub incarnation: Incarnation,
    /// The sender's wall clock, in microseconds since 1970.
    pub wall_us: u64,
    /// The sender's noted writes.
    pub context: Context,
    /// A hash that is equal where the lists of retired incarnations are equal.
    #[serde(with = "postcard::fixint::le")]
    pub retired: u64,
    /// The print of the sender's live entries.
    #[serde(with = "postcard::fixint::le")]
    pub print: u128,
    /// How many live entries the sender has.
    pub count: u32,
    /// The incarnations that the sender has links to.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_MEMBERS>")]
    pub links: Vec<Incarnation>,
    /// The sender's knowledge of other members. It is sent once a minute, and is empty otherwise.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_MEMBERS>")]
    pub claims: Vec<ClaimOf>,
}

/// The knowledge that a digest's sender has of another member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimOf {
    /// The other member.
    pub node: NodeId,
    /// Its incarnation.
    pub incarnation: Incarnation,
    /// How long ago that member showed this, in seconds. A point in time would depend on clocks.
    pub age_s: u32,
    /// That member's context; `None` if it is equal to the sender's own.
    pub context: Option<Context>,
}

/// Incarnations with their highest counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestDots(
    #[serde(deserialize_with = "bound::list::<_, _, MOST_INCARNATIONS>")] pub Vec<Dot>,
);

/// A request for everything that the asker lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// The number of this pull among the asker's.
    pub id: u64,
    /// The incarnation that is asked. Another incarnation of that member may have lost what this
    /// one showed.
    pub of: Incarnation,
    /// The asker's noted writes.
    pub context: Context,
    /// The hash of the asker's retired incarnations.
    #[serde(with = "postcard::fixint::le")]
    pub retired_hash: u64,
    /// The asker's retired incarnations; `None` if the answering member has the same list.
    #[serde(deserialize_with = "bound::optional_list::<_, _, MOST_RETIRED>")]
    pub retired: Option<Vec<(Incarnation, Seen)>>,
}

/// A part of the answer to a pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The pull.
    pub id: u64,
    /// The number of this batch, counted from 0. A gap means that a batch was lost.
    pub number: u32,
    /// Versions that the asker lacks.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_ENTRIES>")]
    pub entries: Vec<(Key, Arc<Entry>)>,
    /// A part of the list of the answering member's keys.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_ENTRIES>")]
    pub keys: Vec<Key>,
    /// In the last batch: what the asker may note once it has taken in all batches.
    pub last: Option<Last>,
}

/// The end of a pull.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// The answering member's context. Every entry whose dot is in it was sent, or the asker had it
    /// already.
    pub context: Context,
    /// The highest dots of tombstones that were dropped by the answering member, or by one whose
    /// context it joined.
    pub floors: LargestDots,
    /// The retired incarnations that the asker has not retired with the same writes.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_RETIRED>")]
    pub retired: Vec<Retired>,
    /// The incarnations that the asker has retired, and that the answering member has not retired
    /// with the same writes.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_RETIRED>")]
    pub unlike: Vec<Incarnation>,
    /// Set if the keys of all batches together are the list of all keys: the answering member's
    /// context when it began the list. Keys of writes noted later may be missing in the list.
    pub listed: Option<Context>,
}

/// A retired incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// Its writes. Every member had noted exactly these.
    pub seen: Seen,
    /// Its floor.
    pub floor: u64,
}

impl Last {
    /// Whether every floor is of an incarnation in the context.
    fn is_sound(&self) -> bool {
        self.floors.0.iter().all(|dot| self.context.seen(dot.incarnation).is_some())
    }
}

/// The keys and dots of the objects in some buckets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// The sender's noted writes.
    pub context: Context,
    /// The numbers of the buckets.
    #[serde(deserialize_with = "bound::list::<_, _, BUCKETS>")]
    pub buckets: Vec<u8>,
    /// The live entries in these buckets.
    #[serde(deserialize_with = "bound::list::<_, _, MOST_ENTRIES>")]
    pub live: Vec<(Key, Dot)>,
}

/// A message that cannot be read: it is damaged, too long, or of a kind that this version does not
/// know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message of the replica cannot be read")]
pub struct BadMessage;

impl Message {
    /// The message as bytes.
    #[expect(clippy::expect_used, reason = "postcard writes any list whose length is known")]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("every list knows its length")
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is longer than 1 MiB, or has a number or a length out of range.
    /// Lengths are checked before anything is built.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        if bytes.len() > MOST_BYTES {
            return Err(BadMessage);
        }
        let (message, rest) = postcard::take_from_bytes::<Self>(bytes).map_err(|_| BadMessage)?;
        if rest.is_empty() && message.is_sound() { Ok(message) } else { Err(BadMessage) }
    }

    fn is_sound(&self) -> bool {
        match self {
            Self::Delta { entry, .. } | Self::Repair { entry, .. } => entry.is_sound(),
            Self::Batch(batch) => {
                batch.entries.iter().all(|(_, entry)| entry.is_sound())
                    && batch.last.as_ref().is_none_or(Last::is_sound)
            }
            Self::Buckets(buckets) => buckets.len() == BUCKETS,
            _ => true,
        }
    }

    /// Roughly how many bytes it counts towards the bound of what waits for the disk. Only deltas
    /// count.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Delta { key, entry } => crate::table::size(key, entry),
            _ => 0,
        }
    }
}
