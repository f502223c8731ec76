//! Locks out addresses with too many wrong credentials. Time is passed in.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use base::ClientAddress;

/// The longest wait of clients on this machine.
const LONGEST_HERE: Duration = Duration::from_secs(60);

/// When an address is locked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOutSettings {
    /// The failures that lock an address out.
    pub failures: u32,
    /// The time within which they count.
    pub within: Duration,
    /// The duration of the lock-out.
    pub lasts: Duration,
    /// The most addresses that are remembered; above that, those that failed longest ago are
    /// forgotten.
    pub addresses: usize,
}

impl Default for LockOutSettings {
    fn default() -> Self {
        let quarter = Duration::from_secs(15 * 60);
        Self { failures: 5, within: quarter, lasts: quarter, addresses: 4096 }
    }
}

/// The failures of each address. A whole /64 of IPv6 counts as one, since one owner has all of its
/// addresses.
///
/// All users of this machine share loopback. The clients of a proxy on this machine that does not name them share
/// it, too, but are counted apart from the users. After the same number of failures, loopback has to wait for a second
/// only, then twice as long after each further failure, a minute at most. So one user's mistake does not lock the
/// others out for long, and guessing is still hopeless.
#[derive(Debug)]
pub struct LockOut {
    settings: LockOutSettings,
    failed: HashMap<ClientAddress, Failures>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    number: u32,
    first: Instant,
    last: Instant,
    /// The end of the lock-out.
    until: Option<Instant>,
    /// Whether a success has forgiven earlier failures.
    is_forgiven: bool,
}

impl LockOut {
    /// No failures yet.
    pub fn new(settings: LockOutSettings) -> Self {
        Self { settings, failed: HashMap::new() }
    }

    /// Whether this address may try.
    ///
    /// # Errors
    /// The time that it has to wait.
    pub fn check(&self, from: ClientAddress, now: Instant) -> Result<(), Duration> {
        let until = self.failed.get(&from.party()).and_then(|failures| failures.until);
        match until.map(|until| until.saturating_duration_since(now)) {
            Some(left) if !left.is_zero() => Err(left),
            _ => Ok(()),
        }
    }

    /// Counts a failure of this address.
    pub fn failed(&mut self, from: ClientAddress, now: Instant) {
        let (from, settings) = (from.party(), self.settings);
        if !self.failed.contains_key(&from) {
            self.make_room(now);
        }
        let new = Failures { number: 0, first: now, last: now, until: None, is_forgiven: false };
        let failures = self.failed.entry(from).or_insert(new);
        if failures.is_over(&settings, now) {
            *failures = new;
        }
        failures.number += 1;
        failures.last = now;
        let beyond = failures.number.checked_sub(settings.failures);
        failures.until = beyond.map(|beyond| match from.ip().is_loopback() {
            true => now + wait_here(beyond),
            false => now + settings.lasts,
        });
    }

    /// Counts a success of this address. Its failures are forgiven, but only once while they
    /// would count: otherwise the owner of a key could guess other keys, and present its own in between.
    pub fn succeeded(&mut self, from: ClientAddress) {
        let failures = self.failed.get_mut(&from.party());
        if let Some(failures) = failures.filter(|failures| !failures.is_forgiven) {
            (failures.number, failures.until, failures.is_forgiven) = (0, None, true);
        }
    }

    fn make_room(&mut self, now: Instant) {
        let settings = self.settings;
        if self.failed.len() < settings.addresses {
            return;
        }
        self.failed.retain(|_, failures| !failures.is_over(&settings, now));
        while self.failed.len() >= settings.addresses.max(1) {
            let oldest = self.failed.iter().min_by_key(|(_, failures)| failures.last);
            let Some((&oldest, _)) = oldest else { return };
            self.failed.remove(&oldest);
        }
    }
}

impl Failures {
    /// Whether they no longer count.
    fn is_over(&self, settings: &LockOutSettings, now: Instant) -> bool {
        let since = match self.until {
            // A short wait, of loopback: failures soon after it add to the earlier ones.
            Some(until) if until.saturating_duration_since(self.last) < settings.lasts => self.last,
            Some(until) => return now >= until,
            None => self.first,
        };
        now.saturating_duration_since(since) >= settings.within
    }
}

fn wait_here(beyond: u32) -> Duration {
    let seconds = 1_u64.checked_shl(beyond.min(32)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(LONGEST_HERE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn lock_out() -> LockOut {
        LockOut::new(LockOutSettings::default())
    }

    fn address(text: &str) -> ClientAddress {
        ClientAddress::new(text.parse().unwrap())
    }

    fn numbered(number: u8) -> ClientAddress {
        ClientAddress::new([10, 0, 0, number].into())
    }

    fn fail(lock_out: &mut LockOut, from: &str, times: u32, now: Instant) {
        (0..times).for_each(|_| lock_out.failed(address(from), now));
    }

    #[test]
    fn five_failures_in_a_quarter_of_an_hour_lock_an_address_out_for_as_long() {
        let (mut lock_out, now) = (lock_out(), Instant::now());
        fail(&mut lock_out, "10.0.0.1", 4, now);
        assert_eq!(lock_out.check(address("10.0.0.1"), now), Ok(()));
        fail(&mut lock_out, "10.0.0.1", 1, now + 14 * MINUTE);
        let left = lock_out.check(address("10.0.0.1"), now + 15 * MINUTE);
        assert_eq!(left, Err(14 * MINUTE));
        assert_eq!(lock_out.check(address("10.0.0.2"), now), Ok(()));
        assert_eq!(lock_out.check(address("10.0.0.1"), now + 29 * MINUTE), Ok(()));
        fail(&mut lock_out, "10.0.0.1", 4, now + 29 * MINUTE);
        assert_eq!(lock_out.check(address("10.0.0.1"), now + 29 * MINUTE), Ok(()), "begun anew");
    }

    #[test]
    fn failures_of_long_ago_and_before_a_success_do_not_count() {
        let (mut lock_out, now) = (lock_out(), Instant::now());
        fail(&mut lock_out, "10.0.0.1", 4, now);
        fail(&mut lock_out, "10.0.0.1", 4, now + 15 * MINUTE);
        assert_eq!(lock_out.check(address("10.0.0.1"), now + 15 * MINUTE), Ok(()));
        lock_out.succeeded(address("10.0.0.1"));
        fail(&mut lock_out, "10.0.0.1", 4, now + 16 * MINUTE);
        assert_eq!(lock_out.check(address("10.0.0.1"), now + 16 * MINUTE), Ok(()));
    }

    #[test]
    fn presenting_an_own_key_in_between_does_not_help_guessing() {
        let (mut lock_out, now) = (lock_out(), Instant::now());
        for _ in 0..2 {
            fail(&mut lock_out, "10.0.0.1", 4, now);
            assert_eq!(lock_out.check(address("10.0.0.1"), now), Ok(()));
            lock_out.succeeded(address("10.0.0.1"));
        }
        fail(&mut lock_out, "10.0.0.1", 1, now);
        assert_eq!(lock_out.check(address("10.0.0.1"), now), Err(15 * MINUTE));
        fail(&mut lock_out, "127.0.0.1", 7, now);
        lock_out.succeeded(address("127.0.0.1"));
        fail(&mut lock_out, "127.0.0.1", 7, now);
        lock_out.succeeded(address("127.0.0.1"));
        assert!(lock_out.check(address("127.0.0.1"), now).is_err(), "here neither");
    }

    #[test]
    fn this_machine_waits_a_second_then_longer_and_a_minute_at_most() {
        let (mut lock_out, mut now) = (lock_out(), Instant::now());
        fail(&mut lock_out, "127.0.0.1", 4, now);
        assert_eq!(lock_out.check(address("::1"), now), Ok(()));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            fail(&mut lock_out, "::ffff:127.0.0.2", 1, now);
            let wait = Duration::from_secs(seconds);
            assert_eq!(lock_out.check(address("::1"), now), Err(wait));
            now += wait;
            assert_eq!(lock_out.check(address("::1"), now), Ok(()));
        }
        fail(&mut lock_out, "127.0.0.1", 4, now + 15 * MINUTE);
        assert_eq!(lock_out.check(address("::1"), now + 15 * MINUTE), Ok(()), "begun anew");
    }

    #[test]
    fn a_whole_network_of_ipv6_is_one_and_mapped_addresses_are_what_they_stand_for() {
        let (mut lock_out, now) = (lock_out(), Instant::now());
        fail(&mut lock_out, "2001:db8::1", 5, now);
        assert!(lock_out.check(address("2001:db8::ffff:2"), now).is_err());
        assert!(lock_out.check(address("2001:db8:0:1::1"), now).is_ok());
        fail(&mut lock_out, "::ffff:10.0.0.1", 5, now);
        assert!(lock_out.check(address("10.0.0.1"), now).is_err());
        assert!(lock_out.check(address("10.0.0.2"), now).is_ok());
    }

    #[test]
    fn no_more_addresses_are_remembered_than_the_bound_and_the_newest_stay() {
        let settings = LockOutSettings { addresses: 3, ..LockOutSettings::default() };
        let (mut lock_out, now) = (LockOut::new(settings), Instant::now());
        for number in 0..10 {
            let from = numbered(number);
            (0..5).for_each(|_| lock_out.failed(from, now + Duration::from_secs(number.into())));
            assert!(lock_out.failed.len() <= 3);
        }
        let is_locked = |number| lock_out.check(numbered(number), now).is_err();
        assert_eq!([6, 7, 8, 9].map(is_locked), [false, true, true, true]);
    }

    #[test]
    fn strangers_behind_a_proxy_lock_out_nobody_who_connects_himself() {
        let (mut lock_out, now) = (lock_out(), Instant::now());
        let (owner, proxy) = (address("127.0.0.1"), address("127.0.0.1").by_proxy());
        (0..100).for_each(|_| lock_out.failed(proxy, now));
        assert!(lock_out.check(proxy, now).is_err());
        assert_eq!(lock_out.check(owner, now), Ok(()));
        let (stranger, other) =
            (address("203.0.113.7").by_proxy(), address("203.0.113.8").by_proxy());
        (0..5).for_each(|_| lock_out.failed(stranger, now));
        assert_eq!(lock_out.check(stranger, now), Err(15 * MINUTE));
        assert_eq!(lock_out.check(other, now), Ok(()));
    }

    proptest! {
        #[test]
        fn guesses_are_never_more_frequent_than_the_settings_allow(
            pauses in prop::collection::vec(0_u64..600, 1..60),
        ) {
            let (mut lock_out, mut now) = (lock_out(), Instant::now());
            let mut looked_at = Vec::new();
            for pause in pauses {
                now += Duration::from_secs(pause);
                if lock_out.check(address("10.0.0.1"), now).is_ok() {
                    lock_out.failed(address("10.0.0.1"), now);
                    looked_at.push(now);
                }
            }
            for ten in looked_at.windows(10) {
                prop_assert!(ten[9] - ten[0] >= 15 * MINUTE, "{ten:?}");
            }
        }
    }
}
