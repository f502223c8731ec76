//! How much of a session's output stays on disk.

/// The bounds on a session's output on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The most bytes in all segments of a session together.
    pub total: u64,
    /// The size of one segment, in bytes: once a segment has reached it, the next one begins.
    pub segment: u64,
}

impl Retention {
    /// The default bounds.
    pub const DEFAULT: Self = Self { total: 16 * 1024 * 1024, segment: 1024 * 1024 };

    /// Whether a segment of this many bytes is full, so that the next chunk goes into a new one.
    pub const fn is_full(&self, bytes: u64) -> bool {
        bytes >= self.segment
    }

    /// The number of oldest segments to delete. `sizes` are the sizes of all segments in bytes,
    /// oldest first. The newest segment always stays.
    pub fn excess(&self, sizes: &[u64]) -> usize {
        let Some((newest, older)) = sizes.split_last() else { return 0 };
        let mut bytes = *newest;
        // Counted from the newest segment on. The first one that does not fit goes, with all older ones.
        let stay = older.iter().rev().take_while(|size| {
            bytes = bytes.saturating_add(**size);
            bytes <= self.total
        });
        older.len() - stay.count()
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The name of a segment's file. Segments must be sorted by number: from 10000 on, the names sort
/// differently as text.
pub fn segment_name(number: u64) -> String {
    format!("{number:04}.log")
}

/// The number of the segment whose file has this name; `None` if the file is not a segment.
pub fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    // `1.log` would be read as the segment `0001.log`, which is another file.
    (segment_name(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Retention = Retention { total: 10, segment: 4 };

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        assert_eq!(SMALL.excess(&[]), 0);
        assert_eq!(SMALL.excess(&[4, 4, 2]), 0);
        assert_eq!(SMALL.excess(&[4, 4, 3]), 1);
        assert_eq!(SMALL.excess(&[1, 1, 9, 1]), 2);
        assert_eq!(SMALL.excess(&[4, u64::MAX, u64::MAX]), 2);
    }

    #[test]
    fn the_newest_stays_even_if_it_alone_is_too_large() {
        assert_eq!(SMALL.excess(&[100]), 0);
        assert_eq!(SMALL.excess(&[1, 100]), 1);
    }

    #[test]
    fn an_older_small_one_does_not_outlive_a_newer_large_one() {
        assert_eq!(SMALL.excess(&[1, 20, 1]), 2);
    }

    #[test]
    fn a_segment_is_full_at_its_size() {
        assert!(!SMALL.is_full(3));
        assert!(SMALL.is_full(4));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for number in [0, 1, 9_999, 10_000, u64::MAX] {
            assert_eq!(segment_number(&segment_name(number)), Some(number));
        }
        assert_eq!(segment_name(7), "0007.log");
        for other in ["", ".log", "7.log", "+0007.log", "00007.log", "0007.log.tmp", "-001.log"] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
