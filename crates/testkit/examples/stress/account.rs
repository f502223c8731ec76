//! What became of all requests, and whether all that was taken was given back.

use std::{fmt, time::Duration};

use testkit::{Daemon, MockBackend};
use tokio::time::timeout;

use crate::{load::Fate, settings::Settings};

/// How long the last slots may take to be free after the last request.
const SETTLE: Duration = Duration::from_secs(15);

/// How many wrong things are told one by one.
const MAX_TOLD: usize = 20;

/// The sum of a run.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) kills: u64,
    pub(crate) wrong: Vec<String>,
    wrongs: u64,
    requests: u64,
    answered: u64,
    hung_up: u64,
    ended_by_event: u64,
    cut: u64,
    exhausted: u64,
    asked_of_backend: u64,
    aborted_at_backend: u64,
}

impl Account {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { seed: settings.seed, ..Self::default() }
    }

    /// Adds what became of one client's requests.
    pub(crate) fn add(&mut self, fates: Vec<Fate>) {
        for fate in fates {
            self.requests += 1;
            match fate {
                Fate::Answered => self.answered += 1,
                Fate::HungUp => self.hung_up += 1,
                Fate::EndedByEvent => self.ended_by_event += 1,
                Fate::Cut => self.cut += 1,
                Fate::Exhausted => self.exhausted += 1,
                Fate::Wrong(what) => self.tell(what),
            }
        }
    }

    /// Checks at the end that nothing is held any more: not by the server, not by the backend.
    pub(crate) async fn settle(&mut self, daemon: &Daemon, backend: &MockBackend, workers: usize) {
        let settled = async {
            daemon.has_workers(workers).await;
            daemon.is_idle().await;
            backend.reaches("no request at the backend", |counts| counts.in_flight() == 0).await;
        };
        if timeout(SETTLE, settled).await.is_err() {
            self.tell(format!("slots are lost: {:?}, {:?}", daemon.workers().await, backend));
        }
        for line in daemon.metrics().await.lines() {
            let gauge = line.starts_with("warren_") && line.contains("in_flight");
            if gauge && !line.ends_with(" 0") && !line.ends_with(" 0.0") {
                self.tell(format!("in /metrics after the end: {line}"));
            }
        }
        let counts = backend.counts();
        self.asked_of_backend = counts.started;
        self.aborted_at_backend = counts.aborted;
    }

    fn tell(&mut self, what: String) {
        self.wrongs += 1;
        if self.wrong.len() < MAX_TOLD {
            self.wrong.push(what);
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}: {} requests in {:.1} s, {} workers killed: {} answered, {} hung up, \
             {} ended by an error event, {} cut, {} with their requeues exhausted, {} wrong; \
             the backend was asked {} times and saw {} aborts",
            self.seed,
            self.requests,
            self.seconds,
            self.kills,
            self.answered,
            self.hung_up,
            self.ended_by_event,
            self.cut,
            self.exhausted,
            self.wrongs,
            self.asked_of_backend,
            self.aborted_at_backend,
        )
    }
}
