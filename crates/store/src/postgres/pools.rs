//! The tables of pools: limits that several servers share. A transaction locks the pools of its reports, always in the
//! same order, reads what was used and all slices in one statement, and writes what [`Pool::take`] makes of them.

use std::collections::{BTreeMap, BTreeSet};

use base::{KeyId, UsageCounts};
use tokio_postgres::{
    Row, Transaction,
    types::{ToSql, Type},
};

use super::{
    PostgresStore,
    columns::{signed, text, unsigned, value},
    failure::Failure,
};
use crate::{
    StoreError, UsageEntry,
    pools::{Answers, Level, Measure, Pool, PoolId, Report, SILENT_S, Slice, Stock},
    usage::days::{DAY, time},
};

/// The condition that a server has reported lately, by the database's clock.
const HEARD: &str = "seen > now() - make_interval(secs => $1)";

/// Notes a report of a server. Changes no row if a later report of it has come before.
const NOTE: &str = "INSERT INTO servers AS known VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (run) DO UPDATE SET number = $2, seen = clock_timestamp() WHERE known.number < $2";

const MAKE: &str = "INSERT INTO pools (key, measure, began, ends)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[]) ON CONFLICT DO NOTHING";

const LOCK: &str = "SELECT FROM pools JOIN unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS asked (key, measure, began)
        USING (key, measure, began)
    ORDER BY pools.key, pools.measure, pools.began FOR UPDATE OF pools";

const LOCK_SLICES: &str = "SELECT FROM slices JOIN unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[])
            AS asked (key, measure, began) USING (key, measure, began)
    ORDER BY slices.key, slices.measure, slices.began, slices.run FOR UPDATE OF slices";

/// Reads a line for each slice of each pool, and one for a pool without slices. A row of usage that is written
/// meanwhile is either in both what was used and what its slice has taken, or in neither, since this is one statement.
const READ: &str = "SELECT pools.key, pools.measure, pools.began, pools.level, pools.at,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT AS now,
        CASE pools.measure
            WHEN 'budget' THEN (SELECT LEAST(COALESCE(SUM(tokens), 0), 9223372036854775807)::BIGINT FROM usage_keys
                WHERE usage_keys.key = pools.key AND day >= pools.began / 86400000 AND day < pools.ends / 86400000)
            WHEN 'money' THEN (SELECT LEAST(COALESCE(SUM(cost), 0), 9223372036854775807)::BIGINT FROM usage_keys
                WHERE usage_keys.key = pools.key AND day >= pools.began / 86400000 AND day < pools.ends / 86400000)
            ELSE 0 END AS used,
        slices.run, slices.granted, slices.settled, slices.reserved, slices.taken,
        EXISTS (SELECT FROM servers WHERE servers.run = slices.run
            AND seen > now() - make_interval(secs => $4)) AS is_heard
    FROM pools JOIN unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS asked (key, measure, began)
            USING (key, measure, began)
        LEFT JOIN slices USING (key, measure, began)";

const WRITE_SLICES: &str = "INSERT INTO slices (key, measure, began, ends, run, granted, settled, reserved, taken)
    SELECT *, 0 FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[],
        $8::BIGINT[])
    ON CONFLICT (key, measure, began, run) DO UPDATE SET granted = excluded.granted, settled = excluded.settled,
        reserved = excluded.reserved";

const WRITE_LEVELS: &str = "UPDATE pools SET level = now.level, at = now.at
    FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[])
        AS now (key, measure, began, level, at)
    WHERE pools.key = now.key AND pools.measure = now.measure AND pools.began = now.began";

/// Asks other servers for what they do not use of these keys' pools.
const RECALL: &str =
    "SELECT pg_notify('warren', 'limits ' || key) FROM unnest($1::TEXT[]) AS short (key)";

/// Delete rows that are no longer needed: settled slices of ended servers and slices of past periods; pools of past
/// periods and of removed keys; servers that were silent for a day and hold no slice; sums of days before the
/// period of any budget.
const FORGET: [&str; 4] = [
    "DELETE FROM slices WHERE (ends > 0 AND ends < $1) OR ((ends = 0 OR (granted <= taken AND settled <= taken))
        AND NOT EXISTS (SELECT FROM servers WHERE servers.run = slices.run AND seen > now() - interval '1 day'))",
    "DELETE FROM pools WHERE (ends > 0 AND ends < $1)
        OR ($1 > 0 AND NOT EXISTS (SELECT FROM keys WHERE keys.id = pools.key))",
    "DELETE FROM servers WHERE $1 > 0 AND seen < now() - interval '1 day'
        AND NOT EXISTS (SELECT FROM slices WHERE slices.run = servers.run)",
    "DELETE FROM usage_keys WHERE day < $1 / 86400000 - 62",
];

/// How long ended pools and slices are kept: a day.
const OVER: i64 = DAY;

impl PostgresStore {
    /// Carries out the reports of a run of a server. `number` must be higher at each call of a run.
    ///
    /// # Errors
    /// When they cannot be written, or a call with a higher number came before; then nothing is changed.
    pub fn report(
        &self,
        run: &str,
        number: u64,
        reports: &[Report],
    ) -> Result<Answers, StoreError> {
        let (run, number, mut reports) = (run.to_owned(), signed(number), reports.to_vec());
        // In one order for all servers: otherwise two of them could wait for each other's locks.
        reports.sort_by(|a, b| a.pool.cmp(&b.pool));
        self.write(async move |transaction| report(transaction, &run, number, &reports).await)
    }

    /// Notes that a run of a server has ended, and no longer holds anything.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn leave(&self, run: &str) -> Result<(), StoreError> {
        let run = run.to_owned();
        self.write(async move |transaction| {
            transaction
                .execute_typed(
                    "UPDATE servers SET seen = '-infinity' WHERE run = $1",
                    &[(&run, Type::TEXT)],
                )
                .await?;
            Ok(())
        })
    }

    /// Deletes what is over for a day at this time, in milliseconds since 1970.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn forget_pools(&self, now_ms: u64) -> Result<(), StoreError> {
        let before = signed(now_ms) - OVER;
        self.write(async move |transaction| {
            for forget in FORGET {
                transaction.execute_typed(forget, &[(&before, Type::INT8)]).await?;
            }
            Ok(())
        })
    }
}

/// Locks the slices of a run that its rows of usage count against.
const LOCK_OF_RUN: &str =
    "SELECT FROM slices WHERE run = $1 AND key = ANY($2) AND measure IN ('budget', 'money')
    ORDER BY key, measure, began, run FOR UPDATE";

/// Adds the sums of rows, by key and day, to what the slices of their run have taken.
const TAKE: &str = "UPDATE slices SET taken = taken + more.amount
    FROM (SELECT key, measure, began,
            SUM(CASE measure WHEN 'money' THEN cost ELSE tokens END)::BIGINT AS amount
        FROM slices JOIN unnest($2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[])
            AS used (key, day, tokens, cost) USING (key)
        WHERE run = $1 AND measure IN ('budget', 'money') AND day >= began AND day < ends
        GROUP BY key, measure, began) AS more
    WHERE slices.run = $1 AND slices.key = more.key AND slices.measure = more.measure
        AND slices.began = more.began";

/// Notes how much the new rows of a run have used. Called in the transaction that adds the rows: from its commit on,
/// the rows count instead of the same amount of the run's slices.
pub(super) async fn taken(
    transaction: &Transaction<'_>,
    run: &str,
    entries: &[UsageEntry],
) -> Result<(), Failure> {
    let mut days: BTreeMap<(String, i64), UsageCounts> = BTreeMap::new();
    for entry in entries {
        let day = time(entry) / DAY * DAY;
        let sums = days.entry((text(entry.key.as_str()), day)).or_default();
        *sums = sums.plus(&entry.counts());
    }
    let keys: Vec<&str> = days.keys().map(|(key, _)| key.as_str()).collect();
    let held = transaction
        .query_typed(LOCK_OF_RUN, &[(&run, Type::TEXT), (&keys, Type::TEXT_ARRAY)])
        .await?;
    if held.is_empty() {
        return Ok(());
    }
    let at: Vec<i64> = days.keys().map(|(_, day)| *day).collect();
    let tokens: Vec<i64> = days.values().map(|sums| signed(sums.total_tokens)).collect();
    let cost: Vec<i64> = days.values().map(|sums| signed(sums.cost.0)).collect();
    transaction
        .execute_typed(
            TAKE,
            &[
                (&run, Type::TEXT),
                (&keys, Type::TEXT_ARRAY),
                (&at, Type::INT8_ARRAY),
                (&tokens, Type::INT8_ARRAY),
                (&cost, Type::INT8_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

async fn report(
    transaction: &Transaction<'_>,
    run: &str,
    number: i64,
    reports: &[Report],
) -> Result<Answers, Failure> {
    let noted =
        transaction.execute_typed(NOTE, &[(&run, Type::TEXT), (&number, Type::INT8)]).await?;
    if noted == 0 {
        return Err(Failure::Away("a later report has come before this one".to_owned()));
    }
    let servers = servers(transaction).await?;
    if reports.is_empty() {
        return Ok(Answers { answers: Vec::new(), servers });
    }
    let ids = Ids::of(reports);
    ids.make(transaction, reports).await?;
    transaction.query_typed(LOCK, &ids.values()).await?;
    transaction.query_typed(LOCK_SLICES, &ids.values()).await?;
    let mut pools = read(transaction, &ids, run).await?;
    let mut answers = Vec::with_capacity(reports.len());
    for report in reports {
        if let Some(pool) = pools.get_mut(&report.pool) {
            answers.push(pool.take(report, servers));
        }
    }
    write(transaction, run, reports, &pools).await?;
    let short = answers.iter().filter(|answer| answer.short && answer.idle > 0);
    let short: BTreeSet<&str> = short.map(|answer| answer.pool.key.as_str()).collect();
    if !short.is_empty() {
        let short: Vec<&str> = short.into_iter().collect();
        transaction.query_typed(RECALL, &[(&short, Type::TEXT_ARRAY)]).await?;
    }
    Ok(Answers { answers, servers })
}

/// The number of servers that have reported lately.
async fn servers(transaction: &Transaction<'_>) -> Result<u64, Failure> {
    let count = format!("SELECT count(*) FROM servers WHERE {HEARD}");
    let silent = f64::from(SILENT_S);
    let row = transaction.query_typed_one(&count, &[(&silent, Type::FLOAT8)]).await?;
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

/// The pools of reports, as columns.
struct Ids {
    keys: Vec<String>,
    measures: Vec<&'static str>,
    began: Vec<i64>,
}

impl Ids {
    fn of(reports: &[Report]) -> Self {
        Self {
            keys: reports.iter().map(|it| text(it.pool.key.as_str())).collect(),
            measures: reports.iter().map(|it| it.pool.measure.as_str()).collect(),
            began: reports.iter().map(|it| signed(it.pool.began_ms)).collect(),
        }
    }

    fn values(&self) -> [(&(dyn ToSql + Sync), Type); 3] {
        [
            (&self.keys, Type::TEXT_ARRAY),
            (&self.measures, Type::TEXT_ARRAY),
            (&self.began, Type::INT8_ARRAY),
        ]
    }

    /// Makes the pools that are missing.
    async fn make(&self, transaction: &Transaction<'_>, reports: &[Report]) -> Result<(), Failure> {
        let ends: Vec<i64> = reports.iter().map(|it| signed(it.ends_ms)).collect();
        let [keys, measures, began] = self.values();
        transaction
            .execute_typed(MAKE, &[keys, measures, began, (&ends, Type::INT8_ARRAY)])
            .await?;
        Ok(())
    }
}

/// A pool as it was read. Times are in milliseconds since 1970, by the database's clock.
#[derive(Default)]
struct Known {
    used: u64,
    level: Option<i64>,
    at: i64,
    now: i64,
    own: Slice,
    /// The slices of other runs, by the run.
    others: BTreeMap<String, Slice>,
    /// The slices of runs that have not reported lately, already cut down to their settled use.
    abandoned: Vec<(String, Slice)>,
    /// The level after all reports.
    after: Option<Level>,
}

impl Known {
    fn take(&mut self, report: &Report, servers: u64) -> crate::pools::Answer {
        let others = self.others.values().chain(self.abandoned.iter().map(|(_, slice)| slice));
        let mut pool = Pool {
            stock: self.stock(report),
            own: self.own,
            others: others.copied().collect(),
            servers,
        };
        let answer = pool.take(report);
        self.own = pool.own;
        self.after = pool.stock.level();
        answer
    }

    fn stock(&self, report: &Report) -> Stock {
        let limit = report.limit;
        match report.pool.measure {
            Measure::Concurrent => Stock::Places { limit },
            Measure::Budget | Measure::Money => Stock::Budget { limit, used: self.used },
            Measure::Tokens | Measure::Requests => {
                let level = self.after.or(self.level.map(Level));
                let passed = if self.after.is_some() { 0 } else { self.now - self.at };
                Stock::refilled(limit, level, u64::try_from(passed).unwrap_or(0))
            }
        }
    }

    fn note(&mut self, row: &Row, run: &str) -> Result<(), Failure> {
        self.used = unsigned(row, "used")?;
        self.level = value(row, "level")?;
        self.at = value::<Option<i64>>(row, "at")?.unwrap_or(0);
        self.now = value(row, "now")?;
        let Some(of) = value::<Option<String>>(row, "run")? else { return Ok(()) };
        let slice = Slice {
            granted: unsigned(row, "granted")?,
            settled: unsigned(row, "settled")?,
            reserved: unsigned(row, "reserved")?,
            taken: unsigned(row, "taken")?,
        };
        match value::<bool>(row, "is_heard")? {
            _ if of == run => self.own = slice,
            true => drop(self.others.insert(of, slice)),
            false => self.abandoned.push((of, slice.abandoned())),
        }
        Ok(())
    }
}

async fn read(
    transaction: &Transaction<'_>,
    ids: &Ids,
    run: &str,
) -> Result<BTreeMap<PoolId, Known>, Failure> {
    let [keys, measures, began] = ids.values();
    let silent = f64::from(SILENT_S);
    let rows =
        transaction.query_typed(READ, &[keys, measures, began, (&silent, Type::FLOAT8)]).await?;
    let mut pools: BTreeMap<PoolId, Known> = BTreeMap::new();
    for row in rows {
        let name: &str = value(&row, "measure")?;
        let Some(measure) = Measure::ALL.into_iter().find(|it| it.as_str() == name) else {
            continue;
        };
        let key = KeyId::from(value::<String>(&row, "key")?);
        let id = PoolId { key, measure, began_ms: unsigned(&row, "began")? };
        pools.entry(id).or_default().note(&row, run)?;
    }
    Ok(pools)
}

async fn write(
    transaction: &Transaction<'_>,
    run: &str,
    reports: &[Report],
    pools: &BTreeMap<PoolId, Known>,
) -> Result<(), Failure> {
    let ends: BTreeMap<&PoolId, i64> =
        reports.iter().map(|report| (&report.pool, signed(report.ends_ms))).collect();
    let mut slices = Vec::new();
    for (id, known) in pools {
        slices.push((id, run, known.own));
        slices.extend(known.abandoned.iter().map(|(of, slice)| (id, of.as_str(), *slice)));
    }
    let levels = pools.iter().filter_map(|(id, known)| Some((id, known.after?.0, known.now)));
    let levels: Vec<_> = levels.collect();
    let slices_are_written = write_slices(transaction, &slices, &ends);
    slices_are_written.await?;
    if levels.is_empty() {
        return Ok(());
    }
    let column =
        |of: fn(&PoolId) -> String| levels.iter().map(|(id, ..)| of(id)).collect::<Vec<_>>();
    let number = |of: fn(&(&PoolId, i64, i64)) -> i64| levels.iter().map(of).collect::<Vec<i64>>();
    transaction
        .execute_typed(
            WRITE_LEVELS,
            &[
                (&column(|id| text(id.key.as_str())), Type::TEXT_ARRAY),
                (&column(|id| id.measure.as_str().to_owned()), Type::TEXT_ARRAY),
                (&number(|it| signed(it.0.began_ms)), Type::INT8_ARRAY),
                (&number(|it| it.1), Type::INT8_ARRAY),
                (&number(|it| it.2), Type::INT8_ARRAY),
            ],
        )
        .await?;
    Ok(())
}

async fn write_slices(
    transaction: &Transaction<'_>,
    slices: &[(&PoolId, &str, Slice)],
    ends: &BTreeMap<&PoolId, i64>,
) -> Result<(), Failure> {
    fn column<'a, T>(
        of: &[(&'a PoolId, &'a str, Slice)],
        value: impl Fn(&(&'a PoolId, &'a str, Slice)) -> T,
    ) -> Vec<T> {
        of.iter().map(value).collect()
    }
    transaction
        .execute_typed(
            WRITE_SLICES,
            &[
                (&column(slices, |it| text(it.0.key.as_str())), Type::TEXT_ARRAY),
                (&column(slices, |it| it.0.measure.as_str()), Type::TEXT_ARRAY),
                (&column(slices, |it| signed(it.0.began_ms)), Type::INT8_ARRAY),
                (&column(slices, |it| ends.get(it.0).copied().unwrap_or(0)), Type::INT8_ARRAY),
                (&column(slices, |it| it.1), Type::TEXT_ARRAY),
                (&column(slices, |it| signed(it.2.granted)), Type::INT8_ARRAY),
                (&column(slices, |it| signed(it.2.settled)), Type::INT8_ARRAY),
                (&column(slices, |it| signed(it.2.reserved)), Type::INT8_ARRAY),
            ],
        )
        .await?;
    Ok(())
}
