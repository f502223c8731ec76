//! The tokens left in a bucket that refills, and the tokens or money left in a budget of a calendar day
//! or month.
//!
//! An estimate is taken before a job begins, and corrected when it has ended. A job is
//! admitted while anything is left. So a budget is overspent by no more than the jobs in
//! flight use.

use std::time::{Duration, Instant};

use base::Period;
use jiff::{Timestamp, ToSpan, tz::TimeZone};

/// The parts in which a token is counted: at one token a minute, one whole part comes back each millisecond.
const PARTS: i128 = 60_000;

/// Tokens a minute. It starts full, and refills steadily.
///
/// The limiters of the crate `governor` do not serve here: they cannot give back the tokens that a job did not use,
/// nor go below zero when a job used more than estimated.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    limit: u64,
    /// The level in parts of a token. Negative when a job used more than estimated.
    level: i128,
    at: Instant,
}

impl Bucket {
    pub(crate) fn full(limit: u64, now: Instant) -> Self {
        Self { limit, level: i128::from(limit) * PARTS, at: now }
    }

    pub(crate) fn left(&mut self, now: Instant) -> u64 {
        self.refill(now);
        u64::try_from(self.level.max(0) / PARTS).unwrap_or(u64::MAX)
    }

    /// The time until the next token; `None` if there is one now.
    pub(crate) fn wait(&mut self, now: Instant) -> Option<Duration> {
        self.refill(now);
        let missing = PARTS - self.level;
        (missing > 0).then(|| self.time_for(missing))
    }

    pub(crate) fn until_full(&mut self, now: Instant) -> Duration {
        self.refill(now);
        self.time_for(self.capacity() - self.level)
    }

    pub(crate) fn take(&mut self, tokens: u64) {
        self.level = self.level.saturating_sub(i128::from(tokens) * PARTS);
    }

    /// Corrects an estimate that was taken.
    pub(crate) fn correct(&mut self, taken: u64, used: u64) {
        let back = (i128::from(taken) - i128::from(used)) * PARTS;
        self.level = self.level.saturating_add(back).min(self.capacity());
    }

    fn capacity(&self) -> i128 {
        i128::from(self.limit) * PARTS
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_millis();
        let passed = i128::try_from(passed).unwrap_or(i128::MAX);
        if passed > 0 {
            let more = passed.saturating_mul(i128::from(self.limit));
            self.level = self.level.saturating_add(more).min(self.capacity());
            self.at += Duration::from_millis(u64::try_from(passed).unwrap_or(u64::MAX));
        }
    }

    fn time_for(&self, parts: i128) -> Duration {
        let limit = i128::from(self.limit.max(1));
        let millis = (parts.max(0) + limit - 1) / limit;
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// A budget of tokens, or of millionths of money, for a day or a month of UTC, by the wall clock.
///
/// A clock that jumps ahead begins another period. The period before is remembered: when the clock is put
/// right, what was used in it counts again.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    limit: u64,
    per: Period,
    used: u64,
    /// The estimates of the jobs in flight.
    reserved: u64,
    /// The period, in milliseconds since 1970.
    period: (u64, u64),
    /// The period before this one, and what was used in it.
    before: ((u64, u64), u64),
}

impl Calendar {
    pub(crate) fn new(limit: u64, per: Period, now_ms: u64) -> Self {
        let period = bounds(per, now_ms);
        Self { limit, per, used: 0, reserved: 0, period, before: ((0, 0), 0) }
    }

    pub(crate) fn left(&mut self, now_ms: u64) -> u64 {
        self.turn(now_ms);
        self.limit.saturating_sub(self.used.saturating_add(self.reserved))
    }

    /// The time until the next period.
    pub(crate) fn until_new(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.period.1.saturating_sub(now_ms))
    }

    pub(crate) fn reserve(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_add(amount);
    }

    /// Replaces a reservation by what was used.
    pub(crate) fn settle(&mut self, reserved: u64, used: u64, now_ms: u64) {
        self.turn(now_ms);
        self.reserved = self.reserved.saturating_sub(reserved);
        self.used = self.used.saturating_add(used);
    }

    fn turn(&mut self, now_ms: u64) {
        if (self.period.0..self.period.1).contains(&now_ms) {
            return;
        }
        let left = (self.period, self.used);
        self.period = bounds(self.per, now_ms);
        self.used = if self.before.0 == self.period { self.before.1 } else { 0 };
        self.before = left;
    }
}

/// The start of the period of a time, in milliseconds since 1970.
pub(crate) fn began(per: Period, now_ms: u64) -> u64 {
    bounds(per, now_ms).0
}

/// The start of the period of a time, and of the next one.
pub(super) fn bounds(per: Period, now_ms: u64) -> (u64, u64) {
    // For a clock beyond the calendar's end, there is one period without an end.
    found(per, now_ms).unwrap_or((0, u64::MAX))
}

fn found(per: Period, now_ms: u64) -> Option<(u64, u64)> {
    let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
    let day = now.to_zoned(TimeZone::UTC).date();
    let (first, span) = match per {
        Period::Day => (day, 1.day()),
        Period::Month => (day.first_of_month(), 1.month()),
    };
    let millis = |date: jiff::civil::Date| {
        let midnight = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
        u64::try_from(midnight.as_millisecond()).ok()
    };
    Some((millis(first)?, millis(first.checked_add(span).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> u64 {
        u64::try_from(text.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    #[test]
    fn a_bucket_refills_in_a_minute_and_no_further() {
        let start = Instant::now();
        let after = |secs| start + Duration::from_secs(secs);
        let mut bucket = Bucket::full(600, start);
        bucket.take(600);
        assert_eq!((bucket.left(start), bucket.wait(start)), (0, Some(Duration::from_millis(100))));
        assert_eq!((bucket.left(after(30)), bucket.wait(after(30))), (300, None));
        assert_eq!(bucket.until_full(after(30)), Duration::from_secs(30));
        assert_eq!(bucket.left(after(300)), 600);
    }

    #[test]
    fn a_bucket_that_was_overdrawn_waits_longer() {
        let start = Instant::now();
        let mut bucket = Bucket::full(60, start);
        bucket.take(10);
        bucket.correct(10, 120);
        assert_eq!(bucket.wait(start), Some(Duration::from_secs(61)));
        bucket.correct(120, 0);
        assert_eq!(bucket.left(start), 60);
        bucket.correct(50, 0);
        assert_eq!(bucket.left(start), 60, "never more than full");
    }

    #[test]
    fn periods_are_the_calendars() {
        let now = ms("2028-02-29T23:59:59.999Z");
        assert_eq!(bounds(Period::Day, now), (ms("2028-02-29T00:00:00Z"), now + 1));
        assert_eq!(bounds(Period::Month, now), (ms("2028-02-01T00:00:00Z"), now + 1));
        let december = bounds(Period::Month, ms("2026-12-31T12:00:00Z"));
        assert_eq!(december.1, ms("2027-01-01T00:00:00Z"));
        assert_eq!(bounds(Period::Day, u64::MAX), (0, u64::MAX));
    }

    #[test]
    fn a_clock_that_jumps_and_is_put_right_gives_no_second_budget() {
        let now = ms("2026-11-20T23:00:00Z");
        let mut budget = Calendar::new(100, Period::Day, now);
        budget.settle(0, 70, now);
        for jumped in [ms("2027-12-25T23:00:00Z"), ms("1970-01-01T00:00:07Z")] {
            assert_eq!(budget.left(jumped), 100);
            budget.settle(0, 20, jumped);
            assert_eq!(budget.left(now), 30);
        }
    }

    #[test]
    fn a_budget_begins_anew_and_keeps_what_is_in_flight() {
        let now = ms("2026-11-20T23:00:00Z");
        let tomorrow = ms("2026-11-21T00:00:00Z");
        let mut budget = Calendar::new(100, Period::Day, now);
        budget.reserve(30);
        budget.settle(30, 70, now);
        budget.reserve(20);
        assert_eq!(budget.left(now), 10);
        assert_eq!(budget.until_new(now), Duration::from_secs(3_600));
        assert_eq!(budget.left(tomorrow), 80);
        budget.settle(20, 25, tomorrow);
        assert_eq!(budget.left(tomorrow), 75, "counted for the day on which it ended");
    }
}
