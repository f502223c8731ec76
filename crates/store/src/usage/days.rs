//! The days of the ledger: the whole days that a query is about, and the sums that a row belongs to.

use super::{UsageEntry, UsageQuery};

/// A day, in milliseconds.
pub(crate) const DAY: i64 = 86_400_000;

/// The latest time of a row, in milliseconds since 1970: some two centuries from now.
pub(crate) const LATEST: i64 = (i64::MAX >> 20) - 1;

/// The key of the sums of a day: day, key, model, provider and path.
pub(crate) type DayKey<'a> = (i64, &'a str, &'a str, &'a str, &'static str);

/// The sums that a row belongs to.
pub(crate) fn of_day(entry: &UsageEntry) -> DayKey<'_> {
    let provider = entry.provider.as_deref().unwrap_or("");
    let day = time(entry) / DAY;
    (day, entry.key.as_str(), entry.model.as_str(), provider, entry.endpoint.path())
}

/// The end of a row's job, in milliseconds since 1970, up to [`LATEST`].
pub(crate) fn time(entry: &UsageEntry) -> i64 {
    signed(entry.at_ms).min(LATEST)
}

/// The queried time: whole days, and the parts of days before and after them. Each begins at its first number, and
/// ends before its second.
pub(crate) struct Span {
    /// In milliseconds since 1970.
    pub(crate) before: (i64, i64),
    /// In days since 1970.
    pub(crate) days: (i64, i64),
    /// In milliseconds since 1970.
    pub(crate) after: (i64, i64),
}

impl Span {
    pub(crate) fn of(query: &UsageQuery) -> Self {
        let since = signed(query.since_ms.unwrap_or(0));
        let until = signed(query.until_ms.unwrap_or(u64::MAX));
        let first = since / DAY + i64::from(since % DAY > 0);
        let end = first.max(until / DAY);
        Self {
            before: (since, until.min(first.saturating_mul(DAY))),
            days: (first, end),
            after: (end.saturating_mul(DAY), until),
        }
    }
}

/// A number for a column: the databases have no unsigned integers. A number that is too large is cut.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
