//! The stock that is left of a pool, beside the amount that servers hold.

/// The parts in which a unit of a rate is counted: at one unit a minute, one whole part comes back each millisecond.
pub const PARTS: i64 = 60_000;

/// The stock of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stock {
    /// A budget of a day or month.
    Budget {
        /// The limit.
        limit: u64,
        /// The use by the ledger.
        used: u64,
    },
    /// Places for requests at the same time. A place becomes free when its job has ended.
    Places {
        /// The limit.
        limit: u64,
    },
    /// A rate, which refills with time.
    Rate {
        /// The limit a minute.
        limit: u64,
        /// The level that is left.
        level: Level,
    },
}

/// The level of a rate, in parts of a unit. Negative when more was used than there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(pub i64);

impl Stock {
    /// The stock of a rate, `passed_ms` milliseconds after it was at this level; `None`: it was never used, and is
    /// full.
    pub fn refilled(limit: u64, level: Option<Level>, passed_ms: u64) -> Self {
        let full = parts(limit);
        let more = signed(passed_ms).saturating_mul(signed(limit));
        let level = level.map_or(full, |Level(before)| before.saturating_add(more).min(full));
        Self::Rate { limit, level: Level(level) }
    }

    /// The level of a rate; `None` for the others.
    pub fn level(&self) -> Option<Level> {
        match self {
            Self::Rate { level, .. } => Some(*level),
            Self::Budget { .. } | Self::Places { .. } => None,
        }
    }

    /// The free amount, while servers hold this much.
    pub(super) fn free(&self, held: u64) -> u64 {
        match self {
            Self::Budget { limit, used } => limit.saturating_sub(used.saturating_add(held)),
            Self::Places { limit } => limit.saturating_sub(held),
            Self::Rate { level, .. } => (level.0.max(0) / PARTS).unsigned_abs(),
        }
    }

    /// Takes units out of a rate. For the others, what servers hold is counted elsewhere.
    pub(super) fn draw(&mut self, units: u64) {
        if let Self::Rate { level, .. } = self {
            level.0 = level.0.saturating_sub(parts(units));
        }
    }

    /// Puts units back into a rate. `idle` is what servers hold without using it: together with the level it never
    /// exceeds the limit, since all of both could be used at once.
    pub(super) fn put_back(&mut self, units: u64, idle: u64) {
        if let Self::Rate { limit, level } = self {
            let most = parts(limit.saturating_sub(idle));
            level.0 = level.0.saturating_add(parts(units)).min(most);
        }
    }

    /// The milliseconds until a rate has a whole unit; `None` for the others.
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
