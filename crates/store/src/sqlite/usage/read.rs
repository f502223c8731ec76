//! Queries, answered from the sums of whole days and from the rows before and after them.

use base::{Money, UsageBy, UsageCounts};
use rusqlite::{Connection, Row, named_params};

use super::{super::unsigned, write::id_from};
use crate::usage::{MAX_GROUPS, UsageAnswer, UsageGroup, UsageQuery, days::Span};

/// The queried span: the sums of whole days, and the rows before and after those, summed up by
/// the columns that tell sums apart.
fn selection() -> String {
    let rows = |which: &str| {
        format!(
            "SELECT day, key, model, provider, api, part.* FROM (SELECT COUNT(*),
                COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0),
                SUM(flags & 1), COALESCE(SUM(outcome <> 'client_gone'), 0), sums,
                COALESCE(SUM(cost), 0)
                FROM usage_rows WHERE {which} GROUP BY sums) AS part
             CROSS JOIN usage_days ON usage_days.id = part.sums"
        )
    };
    format!(
        "FROM (SELECT day, key, model, provider, api, requests, prompt_tokens, completion_tokens,
                estimated, errors, id, cost FROM usage_days WHERE day >= :days_from AND day < :days_to
            UNION ALL {before} UNION ALL {after})
         WHERE (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
            AND (:provider IS NULL OR provider = :provider)",
        before = rows("id >= :before_from AND id < :before_to"),
        after = rows("id >= :after_from AND id < :after_to"),
    )
}

/// The sums, in the order of [`sums`].
const SUMS: &str = "COALESCE(SUM(requests), 0), COALESCE(SUM(prompt_tokens), 0),
    COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(estimated), 0), COALESCE(SUM(errors), 0),
    COALESCE(SUM(cost), 0)";

pub(super) fn answer(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageAnswer> {
    let mut groups = if query.by.is_empty() { Vec::new() } else { groups(connection, query)? };
    let truncated = groups.len() > MAX_GROUPS;
    groups.truncate(MAX_GROUPS);
    let totals = if truncated || query.by.is_empty() {
        totals(connection, query)?
    } else {
        groups.iter().fold(UsageCounts::default(), |sums, group| sums.plus(&group.sums))
    };
    Ok(UsageAnswer { groups, truncated, totals })
}

fn groups(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<Vec<UsageGroup>> {
    let by: Vec<&str> = query.by.iter().map(|by| column(*by)).collect();
    let (by, width) = (by.join(", "), by.len());
    let most = MAX_GROUPS + 1;
    let sql = format!(
        "SELECT {by}, {SUMS} {selection} GROUP BY {by}
         ORDER BY SUM(prompt_tokens) + SUM(completion_tokens) DESC, {by} LIMIT {most}",
        selection = selection()
    );
    let mut groups = connection.prepare_cached(&sql)?;
    let group = |row: &Row<'_>| {
        let names = (0..width).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        Ok(UsageGroup { names, sums: sums(row, width)? })
    };
    select(&mut groups, query, group)
}

fn totals(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageCounts> {
    let mut totals = connection.prepare_cached(&format!("SELECT {SUMS} {}", selection()))?;
    let totals = select(&mut totals, query, |row| sums(row, 0))?;
    Ok(totals.first().copied().unwrap_or_default())
}

fn select<T>(
    statement: &mut rusqlite::Statement<'_>,
    query: &UsageQuery,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let span = Span::of(query);
    let values = named_params! {
        ":before_from": id_from(span.before.0),
        ":before_to": id_from(span.before.1),
        ":days_from": span.days.0,
        ":days_to": span.days.1,
        ":after_from": id_from(span.after.0),
        ":after_to": id_from(span.after.1),
        ":key": query.key,
        ":model": query.model,
        ":provider": query.provider,
    };
    statement.query_map(values, read)?.collect()
}

fn sums(row: &Row<'_>, from: usize) -> rusqlite::Result<UsageCounts> {
    let sum = |at: usize| row.get::<_, i64>(from + at).map(unsigned);
    let (prompt_tokens, completion_tokens) = (sum(1)?, sum(2)?);
    Ok(UsageCounts {
        requests: sum(0)?,
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens.saturating_add(completion_tokens),
        estimated: sum(3)?,
        errors: sum(4)?,
        cost: Money(sum(5)?),
    })
}

/// The column of a grouping, as text.
fn column(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Key => "key",
        UsageBy::Model => "model",
        UsageBy::Provider => "provider",
        UsageBy::Api => "api",
        UsageBy::Day => "date(day * 86400, 'unixepoch')",
    }
}
