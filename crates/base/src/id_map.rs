//! Maps whose keys are ids that this program has drawn at random.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map by [`JobId`](crate::JobId) or [`ProviderId`](crate::ProviderId). Their bits are random: nobody outside
/// can choose ids that collide. For keys that others choose use [`HashMap`] with its own hasher.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Takes an id's own bits for its hash.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdHasher(u64);

/// Spreads the bits of ids that tests number: a map looks at the first and the last ones.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = (self.0.rotate_left(32) ^ bits).wrapping_mul(SPREAD);
        self.0 ^= self.0 >> 32;
    }

    fn write_u128(&mut self, bits: u128) {
        self.write_u64((bits ^ (bits >> 64)) as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, hash::BuildHasher};

    use super::*;
    use crate::{JobId, ProviderId};

    #[test]
    fn ids_that_differ_little_have_other_hashes_at_both_ends() {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        let jobs = (0..1_000).map(|number| hasher.hash_one(JobId::from_random(number)));
        let providers = (0..1_000).map(|number| hasher.hash_one(ProviderId::from_random(number)));
        for hashes in [jobs.collect::<Vec<u64>>(), providers.collect()] {
            let all: HashSet<u64> = hashes.iter().copied().collect();
            let first: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            let last: HashSet<u64> = hashes.iter().map(|hash| hash & 0xff).collect();
            assert_eq!((all.len(), first.len()), (1_000, 128));
            assert!(last.len() > 200, "{}", last.len());
        }
    }

    #[test]
    fn a_map_by_ids_finds_what_is_in_it() {
        let mut map = IdMap::default();
        for number in 0..100 {
            map.insert(JobId::from_random(number << 64), number);
        }
        assert_eq!(map.get(&JobId::from_random(7 << 64)), Some(&7));
        assert_eq!(map.remove(&JobId::from_random(100 << 64)), None);
    }
}
