//! Bounds the unreadable messages of a link, and the log lines about them.

use std::time::{Duration, Instant};

/// The most unreadable messages in one window.
pub(crate) const MOST: u32 = 100;
const WINDOW: Duration = Duration::from_secs(60);

/// More messages than [`MOST`] could not be read in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany;

/// The messages of one link that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    since: Option<Instant>,
    count: u32,
}

impl Complaints {
    /// Counts one more unreadable message.
    ///
    /// # Errors
    /// [`TooMany`] if that is too many.
    pub(crate) fn add(&mut self, now: Instant) -> Result<(), TooMany> {
        if self.since.is_none_or(|since| now.duration_since(since) >= WINDOW) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count > MOST { Err(TooMany) } else { Ok(()) }
    }

    /// Whether the last one was the first of its window, which deserves a line in the log.
    pub(crate) fn is_first(&self) -> bool {
        self.count == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_a_minute_are_borne() {
        let (mut complaints, now) = (Complaints::default(), Instant::now());
        for _ in 0..MOST {
            assert_eq!(complaints.add(now), Ok(()));
        }
        assert_eq!(complaints.add(now), Err(TooMany));
        assert_eq!(complaints.add(now + WINDOW), Ok(()));
        assert!(complaints.is_first());
    }
}
