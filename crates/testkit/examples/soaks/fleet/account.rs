//! The tally of a run.

use std::{collections::BTreeMap, fmt, time::Duration};

use testkit::lab;

use crate::fleet::{
    faults::{Deed, Fault, Part},
    judge::RequestEnd,
};

#[derive(Debug, Default)]
pub(crate) struct Counts {
    requests: u64,
    /// By a worker of the server that was asked, and of another one.
    here: u64,
    elsewhere: u64,
    /// The client had to ask another server, since the first took no connection.
    pub(crate) moved: u64,
    hung_up: u64,
    ended: u64,
    cut: u64,
    refused: BTreeMap<u16, u64>,
    longest: Duration,
    faults: BTreeMap<&'static str, u64>,
    /// Requests whose row was compared, token by token.
    pub(crate) billed: u64,
    pub(crate) tokens: u64,
    /// Requests whose row may be lost with the server that was killed right after their end.
    pub(crate) open: u64,
    /// How long the house took to be in order after the last request.
    pub(crate) settled: Duration,
}

pub(crate) type Report = lab::Report<Counts>;

impl Counts {
    /// Counts a request. Returns what is wrong with its end.
    pub(crate) fn request(&mut self, end: RequestEnd, took: Duration) -> Option<String> {
        self.requests += 1;
        self.longest = self.longest.max(took);
        match end {
            RequestEnd::Answered { elsewhere: false } => self.here += 1,
            RequestEnd::Answered { elsewhere: true } => self.elsewhere += 1,
            RequestEnd::HungUp => self.hung_up += 1,
            RequestEnd::Ended => self.ended += 1,
            RequestEnd::Cut => self.cut += 1,
            RequestEnd::Refused(status) => *self.refused.entry(status).or_default() += 1,
            RequestEnd::Wrong(wrong) => return Some(wrong),
        }
        None
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        let name = match (fault.part, fault.deed) {
            (Part::Server(_), Deed::Kill) => "servers killed",
            (Part::Server(_), Deed::Stop) => "servers stopped",
            (Part::Server(_), Deed::Restart) => "servers restarted",
            (Part::Worker(_), Deed::Kill) => "workers killed",
            (Part::Worker(_), Deed::Stop) => "workers stopped",
            (Part::Worker(_), Deed::Restart) => "workers restarted",
            (Part::Nats, Deed::Stop) => "NATS stopped",
            (Part::Nats, _) => "NATS killed",
            (Part::Postgres, Deed::Stop) => "PostgreSQL stopped",
            (Part::Postgres, _) => "PostgreSQL killed",
            (Part::Way(_), _) => "servers cut off from NATS",
        };
        *self.faults.entry(name).or_default() += 1;
    }

    /// A run in which hardly anything happened has tested nothing.
    pub(crate) fn too_few(&self) -> Option<String> {
        let faults = self.faults.values().sum();
        let least = [
            ("requests", self.requests, 300),
            ("answers by a worker of the server that was asked", self.here, 50),
            ("answers by a worker of another server", self.elsewhere, 50),
            ("requests compared with the ledger", self.billed, 200),
            ("faults", faults, 3),
        ];
        let (what, count, least) = least.into_iter().find(|(_, count, least)| count < least)?;
        Some(format!("only {count} {what}, of at least {least}: this tests nothing"))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, here, elsewhere, moved, hung_up, ended, cut, .. } = self;
        write!(
            f,
            "{requests} requests: {here} answered by a worker of the server that was asked, "
        )?;
        write!(
            f,
            "{elsewhere} by one of another server, {hung_up} hung up, {ended} ended by an error event, {cut} cut"
        )?;
        for (status, count) in &self.refused {
            write!(f, ", {count} refused with {status}")?;
        }
        write!(
            f,
            "; {moved} moved to another server first; the longest took {:.1} s;",
            self.longest.as_secs_f64()
        )?;
        for (name, count) in &self.faults {
            write!(f, " {count} {name},")?;
        }
        let Self { billed, tokens, open, settled, .. } = self;
        write!(
            f,
            " {billed} rows of the ledger with {tokens} tokens as delivered, {open} that may be missing; "
        )?;
        write!(f, "in order after {:.1} s", settled.as_secs_f64())
    }
}
