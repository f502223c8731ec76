//! How often a connection may send: what is over waits with its sender, and nothing is lost.

use std::time::{Duration, Instant};

/// So many tokens a second, and as many at once.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    left: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn new(rate: u32, now: Instant) -> Self {
        let rate = f64::from(rate.max(1));
        Self { rate, left: rate, filled: now }
    }

    /// Takes one for a message that has come, and says how long to wait before the next is read.
    pub(super) fn take(&mut self, now: Instant) -> Option<Duration> {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.left = (self.left + passed * self.rate).min(self.rate) - 1.0;
        self.filled = self.filled.max(now);
        (self.left < 0.0).then(|| Duration::from_secs_f64(-self.left / self.rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_rate_come_at_once_and_then_so_many_a_second() {
        let mut now = Instant::now();
        let mut bucket = Bucket::new(10, now);
        assert!((0..10).all(|_| bucket.take(now).is_none()));
        for _ in 0..50 {
            let wait = bucket.take(now).unwrap();
            assert!((99..=101).contains(&wait.as_millis()), "{wait:?}");
            now += wait;
        }
        now += Duration::from_secs(1000);
        assert!((0..10).all(|_| bucket.take(now).is_none()));
        assert!(bucket.take(now).is_some());
    }
}
