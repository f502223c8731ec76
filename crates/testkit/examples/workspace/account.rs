//! What became of everything.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::settings::Settings;

/// How many wrong things are told one by one.
const MAX_TOLD: usize = 20;

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections of clients that were cut in the first part.
    pub(crate) cuts: u64,
    /// Connections of clients that looked.
    pub(crate) connections: u64,
    /// Of these, such that went on where the one before was cut.
    pub(crate) resumed: u64,
    /// Snapshots after a lag, or after too long an absence.
    pub(crate) snapshots: u64,
    /// Numbered lines that were seen.
    pub(crate) lines: u64,
    pub(crate) opened: u64,
    pub(crate) killed: u64,
    pub(crate) turns: u64,
    pub(crate) questions: u64,
    pub(crate) restarts: u64,
}

/// Where everybody reports.
#[derive(Clone, Default)]
pub(crate) struct Report(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    counts: Counts,
    wrongs: u64,
    wrong: Vec<String>,
}

impl Report {
    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.lock().expect("nobody panics with it"))
    }

    /// Something is not as it should be.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.with(|inner| {
            inner.wrongs += 1;
            if inner.wrong.len() < MAX_TOLD {
                inner.wrong.push(what);
            }
        });
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Counts)) {
        self.with(|inner| add(&mut inner.counts));
    }

    pub(crate) fn wrongs(&self) -> Vec<String> {
        self.with(|inner| inner.wrong.clone())
    }

    /// A run in which hardly anything happened has tested nothing.
    pub(crate) fn check_that_it_counts(&self, settings: &Settings) {
        let few = self.with(|inner| {
            let counts = &inner.counts;
            let clients = settings.clients as u64;
            [
                ("cuts", counts.cuts, settings.cuts),
                ("connections", counts.connections, 2 * clients),
                ("resumed connections", counts.resumed, clients),
                ("snapshots", counts.snapshots, clients),
                ("lines", counts.lines, 1_000),
                ("killed sessions", counts.killed, 2),
                ("turns", counts.turns, if settings.agents.is_some() { 10 } else { 0 }),
                ("restarts", counts.restarts, 1),
            ]
            .into_iter()
            .find(|(_, count, least)| count < least)
        });
        if let Some((what, count, least)) = few {
            self.wrong(format!("only {count} {what}, of at least {least}: this tests nothing"));
        }
    }

    /// The account.
    pub(crate) fn line(&self, seed: u64, took: Duration, mib: u64) -> String {
        self.with(|inner| {
            format!(
                "seed {seed}: {:.1} s; {}; the server occupies {mib} MiB; {} wrong",
                took.as_secs_f64(),
                inner.counts,
                inner.wrongs,
            )
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuts, connections, resumed, snapshots, lines, .. } = self;
        let Self { opened, killed, turns, questions, restarts, .. } = self;
        write!(f, "{cuts} cuts of one session; {connections} connections of clients, ")?;
        write!(f, "{resumed} of them resumed, {snapshots} snapshots, {lines} lines; ")?;
        write!(f, "{opened} terminals opened, {killed} killed; {turns} turns of agents, ")?;
        write!(f, "{questions} questions; {restarts} restarts")
    }
}
