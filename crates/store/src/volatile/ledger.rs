//! Plain sums over the ledger, with which tests compare those of the databases.

use std::collections::BTreeMap;

use base::{UsageBy, UsageCounts};

use crate::usage::{MAX_GROUPS, UsageAnswer, UsageEntry, UsageGroup, UsageQuery};

pub(super) fn answer(entries: &[UsageEntry], query: &UsageQuery) -> UsageAnswer {
    let mut groups: BTreeMap<Vec<String>, UsageCounts> = BTreeMap::new();
    let mut totals = UsageCounts::default();
    for entry in entries.iter().filter(|entry| is_asked_about(entry, query)) {
        let names = query.by.iter().map(|by| name(entry, *by)).collect();
        let one = entry.counts();
        let group = groups.entry(names).or_default();
        *group = group.plus(&one);
        totals = totals.plus(&one);
    }
    let truncated = groups.len() > MAX_GROUPS;
    let group = |(names, sums)| UsageGroup { names, sums };
    let mut groups: Vec<UsageGroup> = groups.into_iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.sums.total_tokens));
    groups.truncate(if query.by.is_empty() { 0 } else { MAX_GROUPS });
    UsageAnswer { groups, truncated, totals }
}

fn is_asked_about(entry: &UsageEntry, query: &UsageQuery) -> bool {
    let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|a| a == value);
    query.since_ms.is_none_or(|since| entry.at_ms >= since)
        && query.until_ms.is_none_or(|until| entry.at_ms < until)
        && is(&query.key, entry.key.as_str())
        && is(&query.model, entry.model.as_str())
        && query.provider.as_deref().is_none_or(|wanted| entry.provider.as_deref() == Some(wanted))
}

fn name(entry: &UsageEntry, by: UsageBy) -> String {
    match by {
        UsageBy::Key => entry.key.to_string(),
        UsageBy::Model => entry.model.to_string(),
        UsageBy::Provider => entry.provider.as_deref().unwrap_or_default().to_owned(),
        UsageBy::Api => entry.endpoint.path().to_owned(),
        UsageBy::Day => day(entry.at_ms / 86_400_000),
    }
}

/// The date of a day since 1970, counted year by year and month by month.
fn day(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}
