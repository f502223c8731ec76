//! How much of a session's output stays on disk.

/// How large segments and all of them together are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// All segments of a session together, in bytes.
    pub total: u64,
    /// One segment: when it is as large as that, the next begins.
    pub segment: u64,
}

impl Retention {
    /// The default bound on a session's output on disk.
    pub const DEFAULT: Self = Self { total: 16 * 1024 * 1024, segment: 1024 * 1024 };

    /// Whether the next chunk goes into a new segment after one of this size.
    pub const fn is_full(&self, bytes: u64) -> bool {
        bytes >= self.segment
    }

    /// How many of the oldest segments are to be dropped, of those with these sizes in bytes, the
    /// oldest first. The newest always stays.
    pub fn excess(&self, sizes: &[u64]) -> usize {
        let Some((newest, older)) = sizes.split_last() else { return 0 };
        let mut kept = *newest;
        let stay = older.iter().rev().take_while(|size| {
            kept = kept.saturating_add(**size);
            kept <= self.total
        });
        older.len() - stay.count()
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The name of a segment's file. Numbers rise; they sort as numbers, not as text.
pub fn segment_name(number: u64) -> String {
    format!("{number:04}.log")
}

/// The number of the segment whose file has this name; `None` for a file that is no segment.
pub fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
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
