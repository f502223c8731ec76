//! The time by which things are deleted for their age.
//!
//! The wall clock may be wrong: one start with a clock a year ahead would delete all that is kept for a year.
//! So this time moves only while the server runs, at most 48 times as fast as the monotonic clock, and
//! never beyond the wall clock. A server that runs for half an hour a day keeps up with the wall clock. A clock that
//! is wrong for a minute deletes only what was due within the hour.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use base::millis;

use crate::StoreError;

/// The most days that this time moves in a day in which the server runs.
const SPEED: u64 = 48;

/// How far the time moves until it is stored again, in milliseconds.
const STORED_EVERY: u64 = 60_000;

/// Where this time is kept over a restart.
pub trait AgeStore: Send + Sync {
    /// The time that was stored last, in milliseconds since 1970; `None` in a new store.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load_reached(&self) -> Result<Option<u64>, StoreError>;

    /// Stores the time that was reached.
    ///
    /// # Errors
    /// When it cannot be written.
    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError>;
}

/// The clock for deleting by age. Times are in milliseconds since 1970; the wall clock's time is passed in.
pub struct AgeClock {
    store: Arc<dyn AgeStore>,
    state: Mutex<Reached>,
}

/// The state of the clock. It is pure.
#[derive(Debug, Clone, Copy)]
struct Reached {
    at_ms: u64,
    steady: Instant,
    stored_ms: Option<u64>,
}

impl AgeClock {
    /// Goes on from the stored time. In a new store it begins with the wall clock's.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn open(store: Arc<dyn AgeStore>, wall_ms: u64, now: Instant) -> Result<Self, StoreError> {
        let stored_ms = store.load_reached()?;
        let at_ms = stored_ms.unwrap_or(wall_ms);
        let state = Mutex::new(Reached { at_ms, steady: now, stored_ms });
        Ok(Self { store, state })
    }

    /// The time now, never after the wall clock's.
    pub fn now(&self, wall_ms: u64, now: Instant) -> u64 {
        self.lock().pass(wall_ms, now)
    }

    /// Stores the time, if it is at least a minute after the stored one. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written; the next call tries again.
    pub fn save(&self) -> Result<(), StoreError> {
        let Some(at_ms) = self.lock().to_store() else { return Ok(()) };
        self.store.save_reached(at_ms)?;
        self.lock().stored_ms = Some(at_ms);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Reached> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reached {
    fn pass(&mut self, wall_ms: u64, now: Instant) -> u64 {
        let passed = now.saturating_duration_since(self.steady);
        self.steady = self.steady.max(now);
        let most = self.at_ms.saturating_add(millis(passed).saturating_mul(SPEED));
        self.at_ms = self.at_ms.max(wall_ms.min(most));
        self.at_ms.min(wall_ms)
    }

    fn to_store(self) -> Option<u64> {
        let is_due = |stored: u64| self.at_ms >= stored.saturating_add(STORED_EVERY);
        self.stored_ms.is_none_or(is_due).then_some(self.at_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::VolatileStore;

    const NOW: u64 = 1_795_170_970_726;
    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;

    fn clock(store: &Arc<VolatileStore>, wall_ms: u64, at: Instant) -> AgeClock {
        AgeClock::open(Arc::<VolatileStore>::clone(store), wall_ms, at).unwrap()
    }

    #[test]
    fn it_is_the_wall_clock_while_that_runs_as_it_should() {
        let (store, start) = (Arc::default(), Instant::now());
        let clock = clock(&store, NOW, start);
        for hours in [0, 1, 2, 300] {
            let later = start + Duration::from_secs(hours * 3600);
            assert_eq!(clock.now(NOW + hours * HOUR, later), NOW + hours * HOUR);
        }
    }

    #[test]
    fn a_jump_moves_it_only_as_the_server_runs() {
        let (store, start) = (Arc::default(), Instant::now());
        let first = clock(&store, NOW, start);
        first.now(NOW, start);
        first.save().unwrap();
        let wrong = clock(&store, NOW + 400 * DAY, start);
        assert_eq!(wrong.now(NOW + 400 * DAY, start), NOW);
        let minute = start + Duration::from_secs(60);
        assert_eq!(wrong.now(NOW + 400 * DAY, minute), NOW + 48 * 60_000);
        wrong.save().unwrap();
        let right = clock(&store, NOW + HOUR, start);
        assert_eq!(right.now(NOW + HOUR, start), NOW + 48 * 60_000);
        assert_eq!(right.now(NOW + HOUR, minute), NOW + HOUR);
        assert_eq!(right.now(NOW - DAY, minute), NOW - DAY, "a clock that is behind deletes less");
        assert_eq!(right.now(NOW + HOUR, minute), NOW + HOUR);
    }

    #[test]
    fn half_an_hour_a_day_is_enough_to_keep_up() {
        let (store, start) = (Arc::default(), Instant::now());
        clock(&store, NOW, start).save().unwrap();
        for day in 1..30 {
            let wall = NOW + day * DAY;
            let clock = clock(&store, wall - HOUR / 2, start);
            let reached = clock.now(wall, start + Duration::from_secs(1800));
            assert_eq!(reached, wall);
            clock.save().unwrap();
        }
    }

    #[test]
    fn it_is_stored_once_a_minute() {
        let (store, start) = (Arc::<VolatileStore>::default(), Instant::now());
        let clock = clock(&store, NOW, start);
        let stored = |seconds: u64| {
            clock.now(NOW + seconds * 1000, start + Duration::from_secs(seconds));
            clock.save().unwrap();
            store.load_reached().unwrap()
        };
        assert_eq!(stored(0), Some(NOW));
        assert_eq!(stored(59), Some(NOW));
        assert_eq!(stored(60), Some(NOW + 60_000));
    }
}
