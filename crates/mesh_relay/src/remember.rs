//! The nodes that have answered a challenge before.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use base::NodeId;

/// How long the stock signature of a node is refused after the node has answered a challenge. The
/// stock signature is always the same, so a machine that has seen it could send it, too.
pub const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Remembers which nodes have answered a challenge, and when, in milliseconds since 1970. Its methods are called under
/// the relay's lock, and must not wait.
pub trait Remember: Send {
    /// A node has answered a challenge now.
    fn proved(&mut self, node: NodeId, unix_ms: u64);

    /// When a node last answered a challenge.
    fn last_proof(&self, node: &NodeId) -> Option<u64>;
}

/// Keeps them in memory only, with a bound.
#[derive(Debug)]
pub struct InMemory {
    most: usize,
    times: HashMap<NodeId, u64>,
    oldest: BTreeSet<(u64, NodeId)>,
}

impl InMemory {
    /// Remembers at most `most` nodes; the oldest are forgotten.
    pub fn new(most: usize) -> Self {
        Self { most, times: HashMap::new(), oldest: BTreeSet::new() }
    }
}

impl Default for InMemory {
    fn default() -> Self {
        Self::new(100_000)
    }
}

impl Remember for InMemory {
    fn proved(&mut self, node: NodeId, unix_ms: u64) {
        if let Some(before) = self.times.insert(node, unix_ms) {
            self.oldest.remove(&(before, node));
        }
        self.oldest.insert((unix_ms, node));
        while self.oldest.len() > self.most {
            let Some((_, forgotten)) = self.oldest.pop_first() else { return };
            self.times.remove(&forgotten);
        }
    }

    fn last_proof(&self, node: &NodeId) -> Option<u64> {
        self.times.get(node).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut memory = InMemory::new(2);
        let node = |byte| NodeId::new([byte; 32]);
        for (byte, at) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            memory.proved(node(byte), at);
        }
        let times = [1, 2, 3].map(|byte| memory.last_proof(&node(byte)));
        assert_eq!(times, [Some(30), None, Some(40)]);
    }
}
