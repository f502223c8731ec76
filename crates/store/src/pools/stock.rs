//! The free amount of a pool.

/// The parts of a unit of a rate: one a minute is one part a millisecond, a whole number.
pub const PARTS: i64 = 60_000;

/// The stock of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// A budget of which this was used.
    Budget {
        /// The limit.
        limit: u64,
        /// The use by the ledger.
        used: u64,
    },
    /// Places, which come back when their job has ended.
    Places {
        /// The limit.
        limit: u64,
    },
    /// A rate, which comes back with time.
    Rate {
        /// The limit a minute.
        limit: u64,
        /// How much there is.
        level: Level,
    },
}

/// The level of a rate, in parts of a unit. Negative when more was used than there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(pub i64);

impl Stock {
    /// The stock of a rate after this time, of a level of before; `None`: it was never used.
    pub fn refilled(limit: u64, level: Option<Level>, passed_ms: u64) -> Self {
        let full = parts(limit);
        let more = signed(passed_ms).saturating_mul(signed(limit).min(full));
        let level = level.map_or(full, |Level(before)| before.saturating_add(more).min(full));
        Self::Rate { limit, level: Level(level) }
    }

    /// The level, if it is of a rate.
    pub fn level(&self) -> Option<Level> {
        match self {
            Self::Rate { level, .. } => Some(*level),
            Self::Budget { .. } | Self::Places { .. } => None,
        }
    }

    /// The free amount while servers hold this.
    pub(super) fn free(&self, held: u64) -> u64 {
        match self {
            Self::Budget { limit, used } => limit.saturating_sub(used.saturating_add(held)),
            Self::Places { limit } => limit.saturating_sub(held),
            Self::Rate { level, .. } => (level.0.max(0) / PARTS).unsigned_abs(),
        }
    }

    /// Takes something out.
    pub(super) fn draw(&mut self, units: u64) {
        if let Self::Rate { level, .. } = self {
            level.0 = level.0.saturating_sub(parts(units));
        }
    }

    /// Takes something back. What servers hold idle and what there is are never more than the limit: else all of
    /// that could be used at once.
    pub(super) fn put_back(&mut self, units: u64, idle: u64) {
        if let Self::Rate { limit, level } = self {
            let most = parts(limit.saturating_sub(idle));
            level.0 = level.0.saturating_add(parts(units)).min(most);
        }
    }

    /// The milliseconds until there is one more.
    pub(super) fn next_ms(&self) -> Option<u64> {
        let Self::Rate { limit, level } = self else { return None };
        let missing = (PARTS - level.0).max(0);
        Some(missing.unsigned_abs().div_ceil((*limit).max(1)))
    }
}

fn parts(units: u64) -> i64 {
    signed(units).saturating_mul(PARTS)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
