//! The faults that were, and their times.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A part of the house.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Server(usize),
    Worker(usize),
    Nats,
    Postgres,
    /// The way from a server to NATS.
    Way(usize),
}

/// A deed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is killed, and started again.
    Kill,
    /// Its processes stand still for a while, or the way lets nothing through.
    Stop,
    /// It ends in order, and is started again. Nothing may fail.
    Restart,
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) part: Part,
    pub(crate) deed: Deed,
}

/// How long the house may take to be as before, after a fault's end: links, leases and pauses between tries.
const RECOVERY: Duration = Duration::from_secs(8);

struct Span {
    fault: Fault,
    from: Instant,
    until: Option<Instant>,
}

/// All faults so far.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Vec<Span>>);

impl Faults {
    /// A fault begins. The result ends it.
    pub(crate) fn begin(&self, fault: Fault) -> usize {
        let mut spans = self.lock();
        spans.push(Span { fault, from: Instant::now(), until: None });
        spans.len() - 1
    }

    pub(crate) fn end(&self, number: usize) {
        if let Some(span) = self.lock().get_mut(number) {
            span.until = Some(Instant::now());
        }
    }

    /// Those that could be felt at some time from `from` to now.
    pub(crate) fn since(&self, from: Instant) -> Vec<Fault> {
        let felt = |span: &&Span| span.until.is_none_or(|until| until + RECOVERY >= from);
        self.lock().iter().filter(felt).map(|span| span.fault).collect()
    }

    /// Whether a server was killed between a time and `within` after it, as far as is known now.
    pub(crate) fn kills_server(&self, server: usize, from: Instant, within: Duration) -> bool {
        let killed = Fault { part: Part::Server(server), deed: Deed::Kill };
        let after = |span: &Span| span.from >= from && span.from <= from + within;
        self.lock().iter().any(|span| span.fault == killed && after(span))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Span>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
