//! Adds and deletes rows, and updates the sums of their days.

use std::collections::BTreeMap;

use base::UsageCounts;
use tokio_postgres::Transaction;

use super::super::{
    columns::{signed, text},
    failure::Failure,
};
use crate::usage::{
    UsageEntry,
    days::{DAY, DayKey, of_day, time},
};

const INSERT: &str = "INSERT INTO usage (at, job, key, model, served_model, provider, api, outcome, status,
        prompt_tokens, completion_tokens, estimated, queue_ms, first_byte_ms, total_ms, streaming, requeues, cost,
        resumes)
    SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[],
        $8::TEXT[], $9::INT[], $10::BIGINT[], $11::BIGINT[], $12::BOOLEAN[], $13::BIGINT[], $14::BIGINT[],
        $15::BIGINT[], $16::BOOLEAN[], $17::BIGINT[], $18::BIGINT[],
        $19::TEXT[])";

/// Adds to the sums of days. The rows must come in the same order from all servers: otherwise two of them could wait
/// for each other's locks.
const ADD_TO_DAYS: &str = "INSERT INTO usage_days AS old
    SELECT * FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[],
        $8::BIGINT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[])
    ON CONFLICT (day, key, model, provider, api) DO UPDATE SET requests = old.requests + excluded.requests,
        prompt_tokens = old.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = old.completion_tokens + excluded.completion_tokens,
        estimated = old.estimated + excluded.estimated, errors = old.errors + excluded.errors,
        cost = old.cost + excluded.cost";

/// Deletes rows, and subtracts them from the sums of their days, which it locks in the order of [`ADD_TO_DAYS`].
const FORGET: &str = "WITH gone AS (DELETE FROM usage WHERE id IN
            (SELECT id FROM usage WHERE at < $1 ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING at / 86400000 AS day, key, model, COALESCE(provider, '') AS provider, api, prompt_tokens,
            completion_tokens, estimated, outcome, cost),
    less AS (SELECT day, key, model, provider, api, COUNT(*) AS requests, SUM(prompt_tokens) AS prompt_tokens,
            SUM(completion_tokens) AS completion_tokens, SUM(estimated::INT) AS estimated,
            SUM((outcome NOT IN ('answered', 'client_gone'))::INT) AS errors, SUM(cost) AS cost
        FROM gone GROUP BY day, key, model, provider, api),
    locked AS (SELECT 1 FROM usage_days WHERE (day, key, model, provider, api) IN
            (SELECT day, key, model, provider, api FROM less)
        ORDER BY day, key COLLATE \"C\", model COLLATE \"C\", provider COLLATE \"C\", api COLLATE \"C\" FOR UPDATE),
    changed AS (UPDATE usage_days AS old SET requests = old.requests - less.requests,
            prompt_tokens = old.prompt_tokens - COALESCE(less.prompt_tokens, 0),
            completion_tokens = old.completion_tokens - COALESCE(less.completion_tokens, 0),
            estimated = old.estimated - less.estimated, errors = old.errors - less.errors,
            cost = old.cost - COALESCE(less.cost, 0)
        FROM less, (SELECT COUNT(*) FROM locked) AS all_locked WHERE (old.day, old.key, old.model, old.provider, old.api)
            = (less.day, less.key, less.model, less.provider, less.api))
    SELECT COUNT(*) FROM gone";

pub(in crate::postgres) async fn add(
    transaction: &Transaction<'_>,
    entries: &[UsageEntry],
) -> Result<(), Failure> {
    insert(transaction, entries).await?;
    let mut days: BTreeMap<DayKey<'_>, UsageCounts> = BTreeMap::new();
    for entry in entries {
        let sums = days.entry(of_day(entry)).or_default();
        *sums = sums.plus(&entry.counts());
    }
    add_to_days(transaction, &days.into_iter().collect::<Vec<_>>()).await
}

pub(super) async fn forget(
    transaction: &Transaction<'_>,
    before: i64,
    most: i64,
) -> Result<usize, Failure> {
    let gone: i64 = transaction.query_one(FORGET, &[&before, &most]).await?.try_get(0)?;
    let empty = "DELETE FROM usage_days WHERE day <= $1 AND requests = 0";
    transaction.execute(empty, &[&(before / DAY)]).await?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}

/// A column of many rows as one value, an array: so one statement inserts any number of rows.
fn column<E, T>(of: &[E], value: impl Fn(&E) -> T) -> Vec<T> {
    of.iter().map(value).collect()
}

async fn insert(transaction: &Transaction<'_>, of: &[UsageEntry]) -> Result<(), Failure> {
    transaction
        .execute(
            INSERT,
            &[
                &column(of, time),
                &column(of, |it| it.job.to_string()),
                &column(of, |it| text(it.key.as_str())),
                &column(of, |it| text(it.model.as_str())),
                &column(of, |it| it.served_model.as_ref().map(|model| text(model.as_str()))),
                &column(of, |it| it.provider.as_deref().map(text)),
                &column(of, |it| it.endpoint.path()),
                &column(of, |it| text(&it.outcome)),
                &column(of, |it| it.status.map(i32::from)),
                &column(of, |it| it.prompt_tokens.map(signed)),
                &column(of, |it| it.completion_tokens.map(signed)),
                &column(of, |it| it.estimated),
                &column(of, |it| signed(it.queue_ms)),
                &column(of, |it| it.first_byte_ms.map(signed)),
                &column(of, |it| signed(it.total_ms)),
                &column(of, |it| it.streaming),
                &column(of, |it| i64::from(it.requeues)),
                &column(of, |it| it.cost.map(|cost| signed(cost.0))),
                &column(of, |it| it.resumes.as_deref().map(text)),
            ],
        )
        .await?;
    Ok(())
}

async fn add_to_days(
    transaction: &Transaction<'_>,
    of: &[(DayKey<'_>, UsageCounts)],
) -> Result<(), Failure> {
    transaction
        .execute(
            ADD_TO_DAYS,
            &[
                &column(of, |(day, _)| day.0),
                &column(of, |(day, _)| text(day.1)),
                &column(of, |(day, _)| text(day.2)),
                &column(of, |(day, _)| text(day.3)),
                &column(of, |(day, _)| day.4),
                &column(of, |(_, sums)| signed(sums.requests)),
                &column(of, |(_, sums)| signed(sums.prompt_tokens)),
                &column(of, |(_, sums)| signed(sums.completion_tokens)),
                &column(of, |(_, sums)| signed(sums.estimated)),
                &column(of, |(_, sums)| signed(sums.errors)),
                &column(of, |(_, sums)| signed(sums.cost.0)),
            ],
        )
        .await?;
    Ok(())
}
