//! The row that the ledger must have for each request.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::fleet::{account::Report, house::House};

/// A row is on its server's disk so long after its request's end, at the latest.
const WRITTEN: Duration = Duration::from_secs(3);

/// A request, as its client knows it.
#[derive(Debug, Clone)]
pub(crate) struct Bill {
    /// The id in its answer.
    pub(crate) job: String,
    pub(crate) home: usize,
    /// When its end was seen.
    pub(crate) ended: Instant,
    /// The tokens of the prompt and of the answer, if the answer was whole.
    pub(crate) tokens: Option<(u64, u64)>,
    /// How many words were delivered otherwise.
    pub(crate) words: u64,
}

/// All requests whose answers had a head.
#[derive(Default)]
pub(crate) struct Bills(Mutex<Vec<Bill>>);

/// A row of the ledger: prompt, completion.
type Row = (u64, u64);

impl Bills {
    pub(crate) fn add(&self, bill: Bill) {
        self.lock().push(bill);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bill>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows that are missing in the ledger, if any.
    pub(crate) async fn missing(&self, house: &House) -> Option<String> {
        let rows = match rows(house).await {
            Ok(rows) => rows,
            Err(wrong) => return Some(wrong),
        };
        let bills = self.lock();
        let is_missing = |bill: &&Bill| !rows.contains_key(&bill.job) && !may_lack(house, bill);
        let missing: Vec<_> = bills.iter().filter(is_missing).collect();
        let first = missing.first()?;
        Some(format!("{} requests have no row, such as {first:?}", missing.len()))
    }

    /// Compares each request with its row.
    pub(crate) async fn compare(&self, house: &House, report: &Report) {
        let Ok(rows) = rows(house).await.map_err(|wrong| report.wrong(wrong)) else { return };
        for bill in self.lock().iter() {
            match rows.get(&bill.job) {
                Some(row) => compare(bill, *row, report),
                None if may_lack(house, bill) => report.tally(|counts| counts.open += 1),
                None => report.wrong(format!("{bill:?} has no row")),
            }
        }
    }
}

/// Whether its row may have been lost with the server that was killed before it was on the disk.
fn may_lack(house: &House, bill: &Bill) -> bool {
    let from = bill.ended.checked_sub(WRITTEN).unwrap_or(bill.ended);
    house.faults.kills_server(bill.home, from, WRITTEN * 2)
}

fn compare(bill: &Bill, row: Row, report: &Report) {
    let (prompt, completion) = row;
    let is_right = match bill.tokens {
        Some(tokens) => tokens == row,
        // Of an answer that broke off, what its client was given, and an event that was under way.
        None => completion >= bill.words.saturating_sub(1),
    };
    if !is_right {
        report.wrong(format!("{bill:?}: {prompt} and {completion} tokens in the ledger"));
    }
    report.tally(|counts| {
        counts.billed += 1;
        counts.tokens += prompt + completion;
    });
}

/// The rows of the ledger by their jobs. An error if a job has two.
async fn rows(house: &House) -> Result<BTreeMap<String, Row>, String> {
    let sql =
        "SELECT job, coalesce(prompt_tokens, 0), coalesce(completion_tokens, 0) FROM warren.usage";
    let mut rows = BTreeMap::new();
    for line in house.sql(sql).await.lines() {
        let mut fields = line.split('|');
        let (Some(job), Some(row)) = (fields.next(), row(fields)) else {
            return Err(format!("a row of the ledger is odd: {line}"));
        };
        match rows.entry(job.to_owned()) {
            Entry::Vacant(place) => _ = place.insert(row),
            Entry::Occupied(_) => return Err(format!("{job} has two rows in the ledger")),
        }
    }
    Ok(rows)
}

fn row<'a>(mut fields: impl Iterator<Item = &'a str>) -> Option<Row> {
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
