//! Times as people write them: an instant, a day, or a span before or after now.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

/// The error for text that is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time such as 2026-11-20T16:00:00Z, a day such as 2026-11-20, or a span such as \
     30d, 12h, 45m or 10s"
)]
pub struct NotATime;

/// A time in the past: an instant, the beginning of a day in UTC, or a span before `now`.
///
/// # Errors
/// [`NotATime`] for anything else.
pub fn past(text: &str, now: Timestamp) -> Result<Timestamp, NotATime> {
    match span(text) {
        Some(span) => now.checked_sub(span).map_err(|_| NotATime),
        None => instant(text),
    }
}

/// A time in the future: an instant, the beginning of a day in UTC, or a span after `now`.
///
/// # Errors
/// [`NotATime`] for anything else.
pub fn future(text: &str, now: Timestamp) -> Result<Timestamp, NotATime> {
    match span(text) {
        Some(span) => now.checked_add(span).map_err(|_| NotATime),
        None => instant(text),
    }
}

fn instant(text: &str) -> Result<Timestamp, NotATime> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let day: Date = text.parse().map_err(|_| NotATime)?;
    let midnight = day.to_zoned(TimeZone::UTC).map_err(|_| NotATime)?;
    Ok(midnight.timestamp())
}

/// A number and a unit. A day has 24 hours, a week seven of them.
fn span(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    Some(SignedDuration::from_secs(i64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn instants_days_and_spans_are_times() {
        let now = at("2026-11-20T16:00:00Z");
        assert_eq!(past("2026-11-01", now), Ok(at("2026-11-01T00:00:00Z")));
        assert_eq!(past("2026-11-01T02:00:00+02:00", now), Ok(at("2026-11-01T00:00:00Z")));
        assert_eq!(past("7d", now), Ok(at("2026-11-13T16:00:00Z")));
        assert_eq!(future("30d", now), Ok(at("2026-12-20T16:00:00Z")));
        assert_eq!(future("90m", now), Ok(at("2026-11-20T17:30:00Z")));
    }

    #[test]
    fn anything_else_is_not() {
        let now = Timestamp::UNIX_EPOCH;
        for text in ["", "d", "-1d", "30", "30 d", "yesterday", "2026-13-01", "é"] {
            assert_eq!(past(text, now), Err(NotATime), "{text}");
            assert_eq!(future(text, now), Err(NotATime), "{text}");
        }
        assert_eq!(future("4294967295w", Timestamp::MAX), Err(NotATime));
    }
}
