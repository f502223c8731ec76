//! Numbers for people.

pub(crate) use base::words::{count, span};

/// A number of bytes in the largest unit that leaves a digit before the point.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut value = number as f64;
    let mut unit = "B";
    for larger in UNITS {
        // A value that would be shown as 1024.0 is 1.0 of the next unit.
        if value < 1023.95 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    format!("{value:.1} {unit}")
}

/// A span in its largest unit, for narrow columns.
pub(crate) fn age(secs: u64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..3_600 => format!("{}m", secs / 60),
        3_600..86_400 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        assert_eq!([0, 59, 60, 7_199, 90_000].map(age), ["0s", "59s", "1m", "1h", "1d"]);
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (5 * 1024 * 1024 * 1024 / 2, "2.5 GiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (number, expected) in cases {
            assert_eq!(bytes(number), expected);
        }
    }
}
