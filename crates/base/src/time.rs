//! Spans and points of time as numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long after the beginning of 1970 something is. What a clock tells that is further back counts as
/// that beginning.
pub fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The milliseconds since the beginning of 1970.
pub fn unix_ms(at: SystemTime) -> u64 {
    millis(since_1970(at))
}

/// Whole milliseconds; a span that has too many has the most there are.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_millisecond_are_cut_off_and_nothing_overflows() {
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_clock_that_is_before_1970_is_at_1970() {
        let (before, after) =
            (UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(1));
        assert_eq!((unix_ms(before), unix_ms(after)), (0, 1_000));
    }
}
