//! A fingerprint of all live objects.

use sha2::{Digest, Sha256};

use crate::{dot::Dot, entry::Key};

/// How many buckets of keys have a print of their own.
pub(crate) const BUCKETS: usize = 256;

/// For each bucket of keys, the sum of the hashes of its live entries' keys and dots, modulo 2^128.
/// A sum does not depend on the order, and an entry is added or taken out in one step. The dot is
/// hashed with the key, so that two versions of one object differ.
#[derive(Debug)]
pub(crate) struct Print {
    buckets: Box<[u128; BUCKETS]>,
    total: u128,
    count: u32,
}

impl Default for Print {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), total: 0, count: 0 }
    }
}

impl Print {
    /// The print of all live objects.
    pub(crate) fn total(&self) -> u128 {
        self.total
    }

    /// How many objects the print covers.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn buckets(&self) -> &[u128] {
        &*self.buckets
    }

    pub(crate) fn add(&mut self, key: &Key, dot: Dot) {
        self.change(key, hash(key, dot));
        self.count = self.count.saturating_add(1);
    }

    pub(crate) fn remove(&mut self, key: &Key, dot: Dot) {
        self.change(key, hash(key, dot).wrapping_neg());
        self.count = self.count.saturating_sub(1);
    }

    fn change(&mut self, key: &Key, by: u128) {
        self.total = self.total.wrapping_add(by);
        let sum = &mut self.buckets[bucket(key)];
        *sum = sum.wrapping_add(by);
    }
}

fn hash(key: &Key, dot: Dot) -> u128 {
    let mut hash = Sha256::new();
    hash.update(key.kind.0.to_le_bytes());
    hash.update(dot.incarnation.0.to_le_bytes());
    hash.update(dot.counter.to_le_bytes());
    hash.update(key.id.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    digest[..16].iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

/// The bucket of a key, by FNV-1a. It is the same in every version of Warren.
pub(crate) fn bucket(key: &Key) -> usize {
    let start = 0x811c_9dc5 ^ u32::from(key.kind.0);
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let sum = key.id.as_bytes().iter().fold(start, step);
    (sum >> 24) as usize % BUCKETS
}
