//! Wall-clock and monotonic time together.

use std::time::{Duration, Instant, SystemTime};

/// A moment by two clocks. Keys expire and budgets restart by the calendar; rates are measured
/// by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// By the monotonic clock.
    pub steady: Instant,
}

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        Self::of(Instant::now(), SystemTime::now())
    }

    /// The moment at which the two clocks showed this.
    pub fn of(steady: Instant, wall: SystemTime) -> Self {
        Self { wall_ms: base::unix_ms(wall), steady }
    }

    /// Seconds since 1970.
    pub fn seconds(&self) -> u64 {
        self.wall_ms / 1000
    }

    /// The moment at this distance after this one.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self { wall_ms: self.wall_ms.saturating_add(base::millis(by)), steady: self.steady + by }
    }
}
