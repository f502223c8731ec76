//! Queries, answered from the sums of whole days and from the rows before and after them.

use base::{Money, UsageBy, UsageCounts};
use tokio_postgres::{Row, Transaction, types::ToSql};

use super::super::{
    columns::{unsigned, value},
    failure::Failure,
};
use crate::usage::{MAX_GROUPS, UsageAnswer, UsageGroup, UsageQuery, days::Span};

/// The queried span: the sums of whole days, and the single rows before and after those in the form of sums.
const ASKED: &str = "FROM (SELECT * FROM usage_days WHERE day >= $1 AND day < $2
        UNION ALL SELECT at / 86400000, key, model, COALESCE(provider, ''), api, 1, COALESCE(prompt_tokens, 0),
            COALESCE(completion_tokens, 0), estimated::INT, (outcome NOT IN ('answered', 'client_gone'))::INT,
            COALESCE(cost, 0)
            FROM usage WHERE (at >= $3 AND at < $4) OR (at >= $5 AND at < $6)) AS asked
    WHERE ($7::TEXT IS NULL OR key = $7) AND ($8::TEXT IS NULL OR model = $8)
        AND ($9::TEXT IS NULL OR provider = $9)";

/// The columns that are summed up. A sum beyond 64 bits is cut to the greatest number.
const COLUMNS: [&str; 6] =
    ["requests", "prompt_tokens", "completion_tokens", "estimated", "errors", "cost"];

pub(super) async fn answer(
    snapshot: &Transaction<'_>,
    query: &UsageQuery,
) -> Result<UsageAnswer, Failure> {
    let mut groups = groups(snapshot, query).await?;
    let truncated = groups.len() > MAX_GROUPS;
    groups.truncate(MAX_GROUPS);
    let totals = match truncated || query.by.is_empty() {
        true => totals(snapshot, query).await?,
        false => groups.iter().fold(UsageCounts::default(), |sums, group| sums.plus(&group.sums)),
    };
    Ok(UsageAnswer { groups, truncated, totals })
}

async fn groups(
    snapshot: &Transaction<'_>,
    query: &UsageQuery,
) -> Result<Vec<UsageGroup>, Failure> {
    if query.by.is_empty() {
        return Ok(Vec::new());
    }
    let by: Vec<&str> = query.by.iter().map(|by| column(*by)).collect();
    let (by, most) = (by.join(", "), MAX_GROUPS + 1);
    let select = format!(
        "SELECT ARRAY[{by}] AS names, {sums} {ASKED} GROUP BY {by}
         ORDER BY SUM(prompt_tokens) + SUM(completion_tokens) DESC, {by} LIMIT {most}",
        sums = sums()
    );
    let rows = rows(snapshot, &select, query).await?;
    rows.iter()
        .map(|row| Ok(UsageGroup { names: value(row, "names")?, sums: read(row)? }))
        .collect()
}

async fn totals(snapshot: &Transaction<'_>, query: &UsageQuery) -> Result<UsageCounts, Failure> {
    let rows = rows(snapshot, &format!("SELECT {} {ASKED}", sums()), query).await?;
    Ok(rows.first().map(read).transpose()?.unwrap_or_default())
}

async fn rows(
    snapshot: &Transaction<'_>,
    select: &str,
    query: &UsageQuery,
) -> Result<Vec<Row>, Failure> {
    let Span { before, days, after } = Span::of(query);
    let UsageQuery { key, model, provider, .. } = query;
    let values: [&(dyn ToSql + Sync); 9] =
        [&days.0, &days.1, &before.0, &before.1, &after.0, &after.1, key, model, provider];
    Ok(snapshot.query(select, &values).await?)
}

fn sums() -> String {
    let sum =
        |column| format!("LEAST(COALESCE(SUM({column}), 0), {})::BIGINT AS {column}", i64::MAX);
    COLUMNS.map(sum).join(", ")
}

fn read(row: &Row) -> Result<UsageCounts, Failure> {
    let prompt_tokens = unsigned(row, "prompt_tokens")?;
    let completion_tokens = unsigned(row, "completion_tokens")?;
    Ok(UsageCounts {
        requests: unsigned(row, "requests")?,
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens.saturating_add(completion_tokens),
        estimated: unsigned(row, "estimated")?,
        errors: unsigned(row, "errors")?,
        cost: Money(unsigned(row, "cost")?),
    })
}

/// The column of a grouping, as text.
fn column(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Key => "key",
        UsageBy::Model => "model",
        UsageBy::Provider => "provider",
        UsageBy::Api => "api",
        UsageBy::Day => "to_char(DATE '1970-01-01' + day::INT, 'YYYY-MM-DD')",
    }
}
