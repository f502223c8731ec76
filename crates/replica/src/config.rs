//! How a replica is set up.

use std::time::Duration;

use crate::entry::{MOST_VALUE_BYTES, NodeId};

/// The most incarnations of one context or message that are accepted: one more than those that are
/// not retired, since the own one is noted beyond their bound.
pub(crate) const MOST_INCARNATIONS: usize = UNRETIRED + 1;
/// The bound of the incarnations that are not retired. Members must not have different ones.
const UNRETIRED: usize = 512;

/// How a replica is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// The id of this member.
    pub node: NodeId,
    /// How old a tombstone must be before it may be dropped.
    pub tombstone_age: Duration,
    /// Its bounds.
    pub limits: Limits,
    /// The rules that hold: all of them, except in tests.
    pub rules: Rules,
}

impl Config {
    /// The defaults for the member `node`.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            tombstone_age: Duration::from_secs(24 * 3600),
            limits: Limits::default(),
            rules: Rules::default(),
        }
    }
}

/// The bounds of everything that writes and messages can grow.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most live objects.
    pub objects: usize,
    /// The longest value, in bytes; never above 192 KiB.
    pub value_bytes: usize,
    /// The most bytes of all objects together, with their keys.
    pub total_bytes: usize,
    /// The most versions that wait for their time.
    pub held: usize,
    /// The most tombstones. Above it the oldest are dropped, whatever their age. Contexts remain,
    /// so this only makes deletes reach others more slowly.
    pub tombstones: usize,
    /// The most holes that deltas may leave in the noted writes of one incarnation.
    pub holes: usize,
    /// The most holes that one incarnation may have while a pull is under way.
    pub pull_holes: usize,
    /// The most incarnations that are not retired.
    pub incarnations: usize,
    /// The most incarnations that are retired. When it is reached, no more are retired.
    pub retired: usize,
    /// The size at which a batch ends, in bytes. One entry may go over it.
    pub batch_bytes: usize,
    /// The most entries of a batch.
    pub batch_entries: usize,
    /// The most bytes of deltas that wait for the disk. Deltas above it are dropped, and digests
    /// make up for them.
    pub waiting_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 65_536,
            value_bytes: MOST_VALUE_BYTES,
            total_bytes: 128 * 1024 * 1024,
            held: 1_024,
            tombstones: 16_384,
            holes: 256,
            pull_holes: 65_536,
            incarnations: UNRETIRED,
            retired: 65_536,
            batch_bytes: 256 * 1024,
            batch_entries: 4_096,
            waiting_bytes: 8 * 1024 * 1024,
        }
    }
}

/// The rules without which members would come to disagree. Only the simulator's tests switch single
/// rules off, to prove that the simulator would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// An absent object whose birth is noted is dead.
    pub births: bool,
    /// An asker below the floor gets the list of keys.
    pub floors: bool,
    /// A version from a clock that is ahead is held. Without this rule it is noted and thrown away.
    pub held: bool,
    /// Contexts are joined at the end of a pull. Without this rule they are joined with each batch.
    pub whole_pulls: bool,
    /// An owner writes its sessions again when other members show them otherwise.
    pub reassertion: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { births: true, floors: true, held: true, whole_pulls: true, reassertion: true }
    }
}
