//! Dates as the mesh writes them.

use serde::{Deserialize, Deserializer, Serialize};

use super::lenient;

/// Seconds between 1970 and 2001.
const EPOCH: f64 = 978_307_200.0;

/// A moment: seconds since the beginning of 2001 in UTC, as a floating point number. A value that
/// is not a number counts as 0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize)]
#[serde(transparent)]
pub struct AppleTime(pub f64);

impl<'de> Deserialize<'de> for AppleTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        lenient::value(deserializer).map(Self)
    }
}

impl AppleTime {
    /// Milliseconds since 1970 as such a date.
    pub fn from_unix_ms(ms: u64) -> Self {
        // Exact up to 2^53 ms, which is 285,000 years.
        Self(ms as f64 / 1000.0 - EPOCH)
    }

    /// Milliseconds since 1970; 0 for an earlier date, or one that is not a number.
    pub fn unix_ms(self) -> u64 {
        // The conversion saturates.
        ((self.0 + EPOCH) * 1000.0).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_from_2001() {
        assert_eq!(AppleTime::from_unix_ms(978_307_200_000).0, 0.0);
        assert_eq!(AppleTime(816_863_163.488).unix_ms(), 1_795_170_363_488);
        assert_eq!(AppleTime::from_unix_ms(1_795_170_363_488).unix_ms(), 1_795_170_363_488);
        for odd in [f64::NAN, f64::NEG_INFINITY, -1e300] {
            assert_eq!(AppleTime(odd).unix_ms(), 0);
        }
    }
}
