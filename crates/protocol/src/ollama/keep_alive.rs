//! How long a model is to stay in memory after an answer.

use crate::json::BadRequest;

/// The units of a span, with their lengths in nanoseconds; the longer names first.
const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 6e10),
    ("h", 3.6e12),
];

/// A `keep_alive`: seconds, or a span such as `5m` or `1h30m`. A negative one means for ever.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeepAlive {
    /// In seconds.
    pub seconds: f64,
}

impl KeepAlive {
    /// Reads one from JSON; `None` for `null`.
    ///
    /// # Errors
    /// [`BadRequest`] for a value that is not a span.
    pub fn read(raw: &str) -> Result<Option<Self>, BadRequest> {
        if raw == "null" {
            return Ok(None);
        }
        let seconds = match serde_json::from_str::<String>(raw) {
            Ok(text) => span(&text),
            Err(_) => serde_json::from_str(raw).ok(),
        };
        let bad = || {
            let words = "`keep_alive` must be a number of seconds, or a span such as \"5m\"";
            BadRequest::new("keep_alive", words)
        };
        seconds.map(|seconds| Some(Self { seconds })).ok_or_else(bad)
    }

    /// Whether the model is to be unloaded at once.
    pub fn is_over(self) -> bool {
        self.seconds == 0.0
    }
}

/// A span in seconds: numbers, each with its unit. Without a unit only a whole number counts, as seconds.
fn span(text: &str) -> Option<f64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Ok(seconds) = rest.parse::<u64>() {
        return Some(sign * seconds as f64);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let (unit, length) = UNITS.iter().find(|(unit, _)| is_unit(&rest[end..], unit))?;
        nanos += number * length;
        rest = &rest[end + unit.len()..];
    }
    Some(sign * nanos / 1e9)
}

/// Whether a text begins with this unit, and not with a longer one.
fn is_unit(text: &str, unit: &str) -> bool {
    text.strip_prefix(unit).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(raw: &str) -> Option<f64> {
        KeepAlive::read(raw).unwrap().map(|read| read.seconds)
    }

    #[test]
    fn seconds_and_spans_are_read() {
        for (raw, expected) in [
            ("0", 0.0),
            ("-1", -1.0),
            ("300.5", 300.5),
            ("\"5m\"", 300.0),
            ("\"1h30m\"", 5_400.0),
            ("\"-1\"", -1.0),
            ("\"0\"", 0.0),
            ("\"1.5s\"", 1.5),
            ("\"250ms\"", 0.25),
            ("\"-2h\"", -7_200.0),
        ] {
            assert_eq!(seconds(raw), Some(expected), "{raw}");
        }
        assert_eq!(seconds("null"), None);
        assert!(KeepAlive::read("0").unwrap().unwrap().is_over());
    }

    #[test]
    fn other_values_are_refused() {
        for raw in [
            "{}", "[]", "true", "\"\"", "\"-\"", "\"5x\"", "\"m\"", "\"1.5\"", "\"5 m\"", "\"5mm\"",
        ] {
            let refused = KeepAlive::read(raw).unwrap_err();
            assert_eq!(refused.param.as_deref(), Some("keep_alive"), "{raw}");
        }
    }
}
