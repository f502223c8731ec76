//! Numbers from a seed.

/// A small generator (SplitMix64): the same seed gives the same numbers, everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True with the given probability, from 0.0 to 1.0.
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits fill a double exactly.
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A generator of its own, for another task.
    pub const fn fork(&mut self) -> Self {
        Self::new(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_numbers_again() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        let again: Vec<_> = (0..3).map(|_| Random::new(7).next()).collect();
        assert!(again.iter().all(|number| *number == again[0]));
    }

    #[test]
    fn chances_come_about_as_often_as_they_should() {
        let mut random = Random::new(1);
        let hits = (0..10_000).filter(|_| random.chance(0.3)).count();
        assert!((2_800..3_200).contains(&hits), "{hits}");
        assert!((0..100).all(|_| !random.chance(0.0) && random.chance(1.0)));
    }
}
