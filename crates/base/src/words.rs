//! Numbers as words for people.

/// A number with its noun, in the singular or the plural.
#[must_use]
pub fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A span in its two largest units.
#[must_use]
pub fn span(secs: u64) -> String {
    let (minutes, hours, days) = (secs / 60, secs / 3_600, secs / 86_400);
    match (days, hours, minutes) {
        (1.., ..) => format!("{days}d {}h", hours % 24),
        (_, 1.., _) => format!("{hours}h {}m", minutes % 60),
        (.., 1..) => format!("{minutes}m {}s", secs % 60),
        _ => format!("{secs}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([count(1, "room"), count(0, "room")], ["1 room", "0 rooms"]);
    }
}
