//! Adds and deletes rows, and updates the sums of their days.

use std::{collections::HashMap, sync::LazyLock};

use base::UsageCounts;
use rusqlite::{OptionalExtension, Statement, ToSql, Transaction, params};

use super::tables::ID_BITS;
use crate::usage::{
    ANSWERED, UsageEntry,
    days::{DayKey, LATEST, of_day, signed, time},
};

/// The rows that one statement inserts: the start and the end of a statement take as long as a row.
const TOGETHER: usize = 64;

const COLUMNS: usize = 14;

static INSERT_ONE: LazyLock<String> = LazyLock::new(|| insert_of(1));
static INSERT_MANY: LazyLock<String> = LazyLock::new(|| insert_of(TOGETHER));

/// Adds to existing sums of a day.
const TO_DAY: &str = "ON CONFLICT (day, key, model, provider, api) DO UPDATE SET requests = requests + excluded.requests,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    estimated = estimated + excluded.estimated, errors = errors + excluded.errors,
    cost = cost + excluded.cost";

pub(super) fn add(transaction: &Transaction<'_>, entries: &[UsageEntry]) -> rusqlite::Result<()> {
    let mut ordered: Vec<&UsageEntry> = entries.iter().collect();
    ordered.sort_by_key(|entry| entry.at_ms);
    let (of, days) = by_day(&ordered);
    let days = add_to_days(transaction, &days)?;
    let mut ids = Ids::of(transaction)?;
    let mut rows = Vec::with_capacity(ordered.len());
    for (entry, of) in ordered.into_iter().zip(of) {
        rows.push((ids.next(time(entry))?, days[of], entry));
    }
    insert(transaction, &rows)
}

/// Deletes at most `most` rows that ended before a time, and subtracts them from the sums of their
/// days.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    before: i64,
    most: i64,
) -> rusqlite::Result<usize> {
    let which = "id IN (SELECT id FROM usage_rows WHERE id < ?1 ORDER BY id LIMIT ?2)";
    let less = format!(
        "UPDATE usage_days SET requests = requests - less,
            prompt_tokens = prompt_tokens - less_prompt, estimated = estimated - less_estimated,
            completion_tokens = completion_tokens - less_completion, errors = errors - less_errors,
            cost = cost - less_cost
         FROM (SELECT sums, COUNT(*) AS less, COALESCE(SUM(prompt_tokens), 0) AS less_prompt,
                COALESCE(SUM(completion_tokens), 0) AS less_completion,
                SUM(flags & 1) AS less_estimated,
                COALESCE(SUM(outcome <> 'client_gone'), 0) AS less_errors,
                COALESCE(SUM(cost), 0) AS less_cost
            FROM usage_rows WHERE {which} GROUP BY sums)
         WHERE id = sums"
    );
    transaction.execute(&less, [id_from(before), most])?;
    // Only the sums of these rows can be empty now. A day may have a million others.
    let empty = format!(
        "DELETE FROM usage_days WHERE requests = 0
            AND id IN (SELECT sums FROM usage_rows WHERE {which})"
    );
    transaction.execute(&empty, [id_from(before), most])?;
    transaction.execute(&format!("DELETE FROM usage_rows WHERE {which}"), [id_from(before), most])
}

/// The least id of a row that ended at this time or later.
pub(super) fn id_from(at_ms: i64) -> i64 {
    if at_ms > LATEST { i64::MAX } else { at_ms << ID_BITS }
}

/// The amounts to add to the sums of days and, for each row, the position of its sums among them. They are added up
/// here: the database would have to read and sort the rows, which takes as long as to write them.
fn by_day<'a>(entries: &[&'a UsageEntry]) -> (Vec<usize>, Vec<(DayKey<'a>, UsageCounts)>) {
    let mut days: Vec<(DayKey<'_>, UsageCounts)> = Vec::new();
    let mut positions: HashMap<DayKey<'_>, usize> = HashMap::new();
    let mut last = 0;
    let of = entries.iter().map(|entry| {
        let of = of_day(entry);
        // Often these are the sums of the row before. A comparison is cheaper than a hash.
        if days.get(last).is_none_or(|(day, _)| *day != of) {
            last = *positions.entry(of).or_insert(days.len());
            if last == days.len() {
                days.push((of, UsageCounts::default()));
            }
        }
        days[last].1 = days[last].1.plus(&entry.counts());
        last
    });
    (of.collect(), days)
}

/// Adds to the sums of days. Returns their ids.
fn add_to_days(
    transaction: &Transaction<'_>,
    days: &[(DayKey<'_>, UsageCounts)],
) -> rusqlite::Result<Vec<i64>> {
    let free = "SELECT COALESCE(MAX(id), 0) + 1 FROM usage_days";
    let mut free: i64 = transaction.prepare_cached(free)?.query_row([], |row| row.get(0))?;
    let add = format!(
        "INSERT INTO usage_days VALUES (?1, ?2, ?3, ?4, ?5, ?11, ?6, ?7, ?8, ?9, ?10, ?12)
         {TO_DAY} RETURNING id"
    );
    let mut add = transaction.prepare_cached(&add)?;
    let mut add = |((day, key, model, provider, api), sums): &(DayKey<'_>, UsageCounts)| {
        let (requests, estimated) = (signed(sums.requests), signed(sums.estimated));
        let (prompt, completion) = (signed(sums.prompt_tokens), signed(sums.completion_tokens));
        let (errors, cost) = (signed(sums.errors), signed(sums.cost.0));
        let values = params![
            day, key, model, provider, api, requests, prompt, completion, estimated, errors, free,
            cost
        ];
        let id: i64 = add.query_row(values, |row| row.get(0))?;
        free += i64::from(id == free);
        Ok(id)
    };
    days.iter().map(&mut add).collect()
}

/// Assigns ids to rows in the order of their times.
struct Ids<'a> {
    transaction: &'a Transaction<'a>,
    /// The greatest id in the table.
    greatest: i64,
    /// The id assigned last.
    last: i64,
}

impl<'a> Ids<'a> {
    fn of(transaction: &'a Transaction<'a>) -> rusqlite::Result<Self> {
        let greatest = "SELECT COALESCE(MAX(id), -1) FROM usage_rows";
        let greatest = transaction.prepare_cached(greatest)?.query_row([], |row| row.get(0))?;
        Ok(Self { transaction, greatest, last: -1 })
    }

    /// The next free id for a row of this time. Times must not decrease from call to call.
    fn next(&mut self, at_ms: i64) -> rusqlite::Result<i64> {
        let first = at_ms << ID_BITS;
        let within = first..=(first | ((1 << ID_BITS) - 1));
        let taken = if first > self.greatest {
            None
        } else if within.contains(&self.last) {
            Some(self.last)
        } else {
            self.greatest_of(*within.start(), *within.end())?
        };
        // If a millisecond has a million rows already, which only happens if a clock stands still, the id is beyond
        // all others, and its time is wrong.
        let free = taken.map_or(first, |taken| taken + 1);
        self.last = if within.contains(&free) { free } else { self.greatest + 1 };
        self.greatest = self.greatest.max(self.last);
        Ok(self.last)
    }

    /// The greatest id between these two. Needed only if rows of a later time are there: the clock was set back, or
    /// a row was late.
    fn greatest_of(&self, first: i64, last: i64) -> rusqlite::Result<Option<i64>> {
        let greatest = "SELECT id FROM usage_rows WHERE id BETWEEN ?1 AND ?2
            ORDER BY id DESC LIMIT 1";
        let mut greatest = self.transaction.prepare_cached(greatest)?;
        greatest.query_row([first, last], |row| row.get(0)).optional()
    }
}

/// A row with its id and the id of its sums.
type NumberedRow<'a> = (i64, i64, &'a UsageEntry);

fn insert(transaction: &Transaction<'_>, rows: &[NumberedRow<'_>]) -> rusqlite::Result<()> {
    let (many, few) = rows.as_chunks::<TOGETHER>();
    if !many.is_empty() {
        let mut insert = transaction.prepare_cached(&INSERT_MANY)?;
        many.iter().try_for_each(|rows| insert_together(&mut insert, rows))?;
    }
    if !few.is_empty() {
        let mut insert = transaction.prepare_cached(&INSERT_ONE)?;
        few.chunks(1).try_for_each(|rows| insert_together(&mut insert, rows))?;
    }
    Ok(())
}

fn insert_of(rows: usize) -> String {
    let row = format!("({})", ["?"; COLUMNS].join(","));
    format!("INSERT INTO usage_rows VALUES {}", vec![row; rows].join(","))
}

fn insert_together(insert: &mut Statement<'_>, rows: &[NumberedRow<'_>]) -> rusqlite::Result<()> {
    for (number, row) in rows.iter().enumerate() {
        bind(insert, number * COLUMNS, row)?;
    }
    insert.raw_execute().map(drop)
}

/// Binds the columns of a row, in the order of the table.
fn bind(
    insert: &mut Statement<'_>,
    before: usize,
    (id, sums, entry): &NumberedRow<'_>,
) -> rusqlite::Result<()> {
    let mut column = before;
    let mut bind = |value: &dyn ToSql| {
        column += 1;
        insert.raw_bind_parameter(column, value)
    };
    bind(id)?;
    bind(&entry.job.bits().to_be_bytes())?;
    bind(sums)?;
    bind(&entry.served_model.as_ref().map(|model| model.as_str()))?;
    bind(&(entry.outcome != ANSWERED).then_some(&*entry.outcome))?;
    bind(&entry.status)?;
    bind(&entry.prompt_tokens.map(signed))?;
    bind(&entry.completion_tokens.map(signed))?;
    bind(&signed(entry.queue_ms))?;
    bind(&entry.first_byte_ms.map(signed))?;
    bind(&signed(entry.total_ms))?;
    bind(&flags(entry))?;
    bind(&entry.cost.map(|cost| signed(cost.0)))?;
    bind(&entry.resumes.as_deref())
}

/// The booleans of a row as one bit each, and above them the number of requeues. A column costs
/// more than a bit.
fn flags(entry: &UsageEntry) -> i64 {
    i64::from(entry.estimated) | i64::from(entry.streaming) << 1 | i64::from(entry.requeues) << 2
}
