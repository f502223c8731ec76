//! The limits of the work of one request.

use std::time::{Duration, Instant};

use crate::error::FileError;

/// The deepest nesting of directories. Each level keeps one or two descriptors open.
pub(crate) const MAX_DEPTH: usize = 128;
/// The most entries in one copy.
pub(crate) const MAX_COPIED: usize = 200_000;
/// The most time that a copy, a delete or the digest before a window may take.
pub(crate) const TIME: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    left: usize,
    until: Instant,
}

impl Budget {
    pub(crate) fn entries(limit: usize) -> Self {
        Self { limit, left: limit, until: Instant::now() + TIME }
    }

    /// A budget for a delete or a digest: any number of entries, within the bounds on depth and time.
    pub(crate) fn time() -> Self {
        Self::entries(usize::MAX)
    }

    /// Counts an entry at this depth.
    pub(crate) fn take(&mut self, depth: usize) -> Result<(), FileError> {
        if depth > MAX_DEPTH {
            return Err(FileError::TooDeep { limit: MAX_DEPTH });
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err(FileError::TooManyEntries { limit: self.limit });
        };
        self.left = left;
        self.in_time()
    }

    /// Fails if the time is over.
    pub(crate) fn in_time(&self) -> Result<(), FileError> {
        if Instant::now() < self.until { Ok(()) } else { Err(FileError::TooLong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_depth_and_time_are_bounded() {
        let mut budget = Budget::entries(2);
        assert!(matches!(budget.take(MAX_DEPTH + 1), Err(FileError::TooDeep { .. })));
        assert!(budget.take(0).is_ok() && budget.take(MAX_DEPTH).is_ok());
        assert!(matches!(budget.take(0), Err(FileError::TooManyEntries { limit: 2 })));
        let late = Budget { until: Instant::now(), ..Budget::time() };
        assert!(matches!(late.in_time(), Err(FileError::TooLong)));
    }
}
