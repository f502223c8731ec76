//! Limits of keys that several servers share. A limit is a *pool* in the database, of which each server holds a
//! *slice*: it admits requests from its slice by itself, asks for more before that is used up, and gives back what it
//! does not need. So what is used, in flight and idle together never exceeds the pool.
//!
//! The effect of a server's report on a pool is a pure step, [`Pool::take`]. `postgres` takes it within a transaction,
//! tests without a database.
//!
//! - `stock`: what is free in a pool

mod stock;

use base::KeyId;

pub use self::stock::{Level, PARTS, Stock};

/// The most reports in one step.
pub const MAX_REPORTS: usize = 500;

/// After this many seconds without a report, a server loses what it does not use of its slices.
pub const SILENT_S: u32 = 15;

/// Which limit of a key a pool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Requests at the same time.
    Concurrent,
    /// Tokens of a day or month.
    Budget,
    /// Millionths of money of a day or month.
    Money,
    /// Tokens a minute.
    Tokens,
    /// Requests a minute.
    Requests,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId {
    /// The key whose limit it is.
    pub key: KeyId,
    /// Which of its limits.
    pub measure: Measure,
    /// The begin of the day or month, in milliseconds since 1970; 0 for a limit without one.
    pub began_ms: u64,
}

/// A server's report of its slice, with its wishes. Sums are since the begin of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The pool.
    pub pool: PoolId,
    /// The limit.
    pub limit: u64,
    /// The end of the day or month, in milliseconds since 1970; 0 for a limit without one.
    pub ends_ms: u64,
    /// The use of jobs that ended; `None` while the server has had no answer about this pool, and so does not know
    /// what it has reported before.
    pub settled: Option<u64>,
    /// The expected use of jobs in flight, with the settled use if that is not reported above.
    pub reserved: u64,
    /// The amount that it wants to have beyond these two. What it has beyond that is given back.
    pub keep: u64,
    /// The part of `keep` that requests wait for.
    pub need: u64,
}

/// A server's slice after its report. Sums are since the begin of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The pool.
    pub pool: PoolId,
    /// All that it was granted.
    pub granted: u64,
    /// The settled use that it has reported.
    pub settled: u64,
    /// The amount that nobody holds.
    pub free: u64,
    /// The amount that other servers hold without using it, by their last reports.
    pub idle: u64,
    /// Whether it was granted less than requests wait for.
    pub short: bool,
    /// The milliseconds until the pool has one more unit, if that is known.
    pub next_ms: Option<u64>,
}

/// The answers to reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// One for each report.
    pub answers: Vec<Answer>,
    /// The number of servers that reported lately, this one included.
    pub servers: u64,
}

/// A server's slice, as the database has it. Sums are since the begin of its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// All that was granted.
    pub granted: u64,
    /// The reported use.
    pub settled: u64,
    /// The reported expected use of jobs in flight.
    pub reserved: u64,
    /// The use by those of its rows of the ledger that the database has taken.
    pub taken: u64,
}

/// A pool at one moment, with all slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The limit, and what is left of it.
    pub stock: Stock,
    /// The slice of the server that reports.
    pub own: Slice,
    /// The slices of the other servers.
    pub others: Vec<Slice>,
    /// The number of servers, this one included.
    pub servers: u64,
}

impl Measure {
    /// All measures, in the order in which they are checked.
    pub const ALL: [Self; 5] =
        [Self::Concurrent, Self::Budget, Self::Money, Self::Tokens, Self::Requests];

    /// Its name in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Concurrent => "concurrent",
            Self::Budget => "budget",
            Self::Money => "money",
            Self::Tokens => "tpm",
            Self::Requests => "rpm",
        }
    }

    /// Whether it refills with time.
    pub const fn is_rate(self) -> bool {
        matches!(self, Self::Tokens | Self::Requests)
    }
}

impl Slice {
    /// The slice of a server that no longer reports: only its settled use is left. The use of its jobs in flight
    /// counts once their rows of the ledger come.
    #[must_use]
    pub fn abandoned(self) -> Self {
        Self { granted: self.settled, reserved: 0, ..self }
    }

    /// The amount that it holds of a budget beyond the ledger's rows.
    fn held(&self) -> u64 {
        self.granted.max(self.busy()).saturating_sub(self.taken)
    }

    fn idle(&self) -> u64 {
        self.granted.saturating_sub(self.busy())
    }

    fn busy(&self) -> u64 {
        self.settled.saturating_add(self.reserved)
    }
}

impl Pool {
    /// Carries out a report.
    pub fn take(&mut self, report: &Report) -> Answer {
        self.note(report);
        self.give_back(report.keep);
        let idle = self.others.iter().map(Slice::idle).fold(0, u64::saturating_add);
        let room = self.room();
        let over = self.own.busy().saturating_sub(self.own.granted);
        let missing =
            |beyond: u64| self.own.busy().saturating_add(beyond).saturating_sub(self.own.granted);
        let (needed, wanted) = (missing(report.need), missing(report.keep.max(report.need)));
        // Beyond what requests wait for, a server gets at most half of its equal part of what is free: others may need
        // the rest soon.
        let fair = room.saturating_sub(over) / self.servers.max(1).saturating_mul(2);
        let more = wanted.min(needed.max(over.saturating_add(fair))).min(room);
        self.own.granted = self.own.granted.saturating_add(more);
        self.stock.draw(more);
        Answer {
            pool: report.pool.clone(),
            granted: self.own.granted,
            settled: self.own.settled,
            free: room - more,
            idle,
            short: more < needed,
            next_ms: self.stock.next_ms(),
        }
    }

    fn note(&mut self, report: &Report) {
        // The settled use never falls, so a report that comes late does not undo a newer one.
        self.own.settled = self.own.settled.max(report.settled.unwrap_or(0));
        self.own.reserved = report.reserved;
        let over = self.own.settled.saturating_sub(self.own.granted);
        self.own.granted += over;
        self.stock.draw(over);
    }

    fn give_back(&mut self, keep: u64) {
        let needed = self.own.busy().saturating_add(keep);
        let back = self.own.granted.saturating_sub(needed);
        self.own.granted -= back;
        let idle = self.all().map(Slice::idle).fold(0, u64::saturating_add);
        self.stock.put_back(back, idle);
    }

    /// The amount that can be granted: no server holds it, and it is not needed for jobs in flight.
    fn room(&self) -> u64 {
        let own = self.own.granted.saturating_sub(self.own.taken);
        let held = self.others.iter().map(Slice::held).fold(own, u64::saturating_add);
        self.stock.free(held)
    }

    fn all(&self) -> impl Iterator<Item = &Slice> {
        self.others.iter().chain([&self.own])
    }
}

#[cfg(test)]
mod tests;
