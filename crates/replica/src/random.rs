//! Random numbers from a seed, so that every run can be repeated.

use std::time::Duration;

/// SplitMix64, by Sebastiano Vigna, in the public domain. It spreads timers. Nothing secret depends
/// on it.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A delay of at least `least` and less than `most`.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_micros().max(1);
        let part = u128::from(self.bits()) % span;
        least + Duration::from_micros(u64::try_from(part).unwrap_or_default())
    }
}

/// Spreads the information of each bit over all bits of the number.
pub(crate) fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
