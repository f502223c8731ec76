//! The share that a server may use beyond its slice while the database is away: its part of the stock that nobody
//! held at the last report. So servers that lose the database together do not overspend a budget together.

use std::time::{Duration, Instant};

use store::pools::Measure;

/// The last report of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contact {
    /// The amount that nobody held.
    pub(super) free: u64,
    /// The number of servers, with this one.
    pub(super) servers: u64,
    pub(super) at: Instant,
}

/// The share of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// The amount that may be used beyond the slice.
    pub(super) extra: u64,
    /// The time up to which the refill of a rate has been added.
    at: Instant,
}

impl Share {
    /// The share when the database is found to be away.
    pub(super) fn of(measure: Measure, limit: u64, contact: &Contact) -> Self {
        let servers = contact.servers.max(1);
        let extra = match measure {
            Measure::Concurrent => limit.div_ceil(servers),
            _ => contact.free / servers,
        };
        Self { extra, at: contact.at }
    }

    /// Adds the amount that comes back with time: a rate refills at this server's part of it. `left`: what is left of
    /// the slice, beside the share.
    pub(super) fn refill(&mut self, limit: u64, servers: u64, left: i128, now: Instant) {
        let a_minute = limit.div_ceil(servers.max(1)).max(1);
        let passed = now.saturating_duration_since(self.at).as_millis();
        let more = passed.saturating_mul(u128::from(a_minute)) / 60_000;
        if more == 0 {
            return;
        }
        let most = i128::from(a_minute) - left - i128::from(self.extra);
        let more = i128::try_from(more).unwrap_or(i128::MAX);
        let added = u64::try_from(more.min(most)).unwrap_or(0);
        self.extra = self.extra.saturating_add(added);
        // The time of a unit that is not complete is kept for the next call.
        let used = u128::try_from(more).unwrap_or(0).saturating_mul(60_000) / u128::from(a_minute);
        self.at += Duration::from_millis(u64::try_from(used).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Duration = Duration::from_secs(20);

    #[test]
    fn shares_of_a_budget_are_what_was_free_and_no_more() {
        let at = Instant::now();
        let contact = Contact { free: 100, servers: 3, at };
        assert_eq!(Share::of(Measure::Budget, 1_000, &contact).extra, 33);
        assert_eq!(Share::of(Measure::Concurrent, 4, &contact).extra, 2);
        assert_eq!(Share::of(Measure::Money, 9, &Contact { servers: 0, ..contact }).extra, 100);
    }

    #[test]
    fn a_rate_goes_on_at_a_part_of_it() {
        let at = Instant::now();
        let mut share = Share::of(Measure::Requests, 90, &Contact { free: 3, servers: 3, at });
        share.refill(90, 3, 0, at + Duration::from_secs(1));
        assert_eq!(share.extra, 1, "of thirty a minute nothing yet");
        share.refill(90, 3, 0, at + LATER);
        assert_eq!(share.extra, 11);
        share.refill(90, 3, 0, at + 9 * LATER);
        assert_eq!(share.extra, 30, "no more than a minute's worth");
        share.refill(90, 3, -25, at + 18 * LATER);
        assert_eq!(share.extra, 55);
    }
}
