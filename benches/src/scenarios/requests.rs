//! Requests one after another on each connection. The targets take turns in each round, beginning
//! with another one each time, so that whatever drifts on the machine hits all of them alike.

use std::time::Duration;

use anyhow::Result;

use crate::{
    cli::Kind,
    lab::Lab,
    load::{
        Failures, Plan,
        closed::{Closed, LIMIT, Outcome},
    },
    payload::Answer,
    proc,
    report::{BACKENDS, Column, Goal, Line, Report, Section, mib},
    targets::Target,
};

const CHUNKS: u32 = 64;

const PLAIN: usize = 1024;

/// Warm-up, as a share of a round.
const WARMUP: f64 = 0.15;

/// Time a load generator may take beside its round and its last request.
const MARGIN: Duration = Duration::from_secs(30);

pub(super) const RATE: Column = Column::new("req/s", 1);
pub(super) const P50: Column = Column::new("p50 ms", 3);
const P99: Column = Column::new("p99 ms", 3);
const FIRST50: Column = Column::new("ttfb p50 ms", 3);
const FIRST99: Column = Column::new("ttfb p99 ms", 3);
const CHUNK_RATE: Column = Column::new("chunks/s", 0);
const CPU: Column = Column::new("cpu s/1000", 3);
const PEAK: Column = Column::new("peak MiB", 1);

pub(super) const COLUMNS: [Column; 8] = [RATE, P50, P99, FIRST50, FIRST99, CHUNK_RATE, CPU, PEAK];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    connections: u32,
    stream: bool,
    body: usize,
}

impl Row {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of = |body| {
            [(1, false), (1, true), (32, false), (32, true)].map(|(connections, stream)| Self {
                connections,
                stream,
                body,
            })
        };
        [1 << 10, 100 << 10, 10 << 20].into_iter().flat_map(of)
    }

    /// Streams over many connections, with small bodies.
    pub(super) const STREAMS: Self = Self { connections: 32, stream: true, body: 1 << 10 };

    /// Many connections with small bodies: where what each request costs shows most.
    pub(super) fn busiest() -> impl Iterator<Item = Self> {
        [false, true].into_iter().map(|stream| Self { connections: 32, stream, body: 1 << 10 })
    }

    /// Streams with small bodies, one and as many as a model engine answers at once.
    pub(super) fn engines() -> impl Iterator<Item = Self> {
        [1, 4].into_iter().map(|connections| Self { connections, ..Self::STREAMS })
    }

    /// With small bodies, one connection and many.
    pub(super) fn small() -> impl Iterator<Item = Self> {
        [Self { connections: 1, stream: false, body: 1 << 10 }].into_iter().chain(Self::busiest())
    }

    /// Whether one request comes after the other.
    pub(super) fn is_alone(&self) -> bool {
        self.connections == 1
    }

    /// `plain/32/1KiB`.
    pub(crate) fn name(&self) -> String {
        let kind = if self.stream { "stream" } else { "plain" };
        format!("{kind}/{}/{}", self.connections, size(self.body))
    }

    pub(super) fn title(&self) -> String {
        let kind = match self.stream {
            true => format!("streamed answers of {CHUNKS} chunks"),
            false => format!("plain answers of {}", size(PLAIN)),
        };
        format!("{} connection(s), {kind}, request bodies of {}", self.connections, size(self.body))
    }

    fn answer(&self) -> Answer {
        match self.stream {
            true => Answer::back_to_back(CHUNKS),
            false => Answer::Plain { bytes: PLAIN },
        }
    }

    /// Of rows with bodies of 1 KiB, in which the rest shows least.
    fn goals(&self) -> Vec<Goal> {
        let [nginx, bare, warren, up] =
            [Kind::Nginx, Kind::Bare, Kind::Warren, Kind::Up].map(Kind::name);
        match (self.connections, self.stream) {
            _ if self.body > 1 << 10 => Vec::new(),
            (1, false) => vec![P50.at_most(warren, 1.6).beside(nginx)],
            (1, true) => vec![
                P50.at_most(warren, 1.6).beside(nginx),
                FIRST50.at_most(warren, 2.0).beside(nginx),
            ],
            (_, false) => vec![
                RATE.at_least(warren, 0.75).beside(bare),
                CPU.at_most(warren, 1.9).beside(bare),
            ],
            (_, true) => vec![
                RATE.at_least(warren, 1.0).beside(nginx),
                CHUNK_RATE.at_least(warren, 1.0).beside(nginx),
                CPU.at_most(warren, 1.3).beside(nginx),
                FIRST50.at_most(warren, 1.5).beside(nginx),
                RATE.at_least(up, 1.0).beside(nginx),
            ],
        }
    }
}

pub(crate) async fn measure(rows: &[Row], lab: &Lab, report: &mut Report) -> Result<()> {
    let mut targets = lab.launcher.launch_all(64).await?;
    for row in rows {
        report.add(section(*row, lab, &mut targets).await?)?;
    }
    for target in targets {
        target.stop().await;
    }
    Ok(())
}

async fn section(row: Row, lab: &Lab, targets: &mut [Target]) -> Result<Section> {
    Ok(Section {
        name: row.name(),
        title: row.title(),
        columns: COLUMNS.to_vec(),
        lines: lines(row, lab, targets).await?,
        bases: BACKENDS,
        goals: row.goals(),
    })
}

pub(super) async fn lines(row: Row, lab: &Lab, targets: &mut [Target]) -> Result<Vec<Line>> {
    let mut all: Vec<Rounds> = targets.iter().map(|_| Rounds::default()).collect();
    for at in lab.turns(targets.len()) {
        let round = one_round(row, lab, &mut targets[at]).await?;
        all[at].add(row, &round, &targets[at]);
    }
    Ok(targets.iter().zip(all).map(|(target, rounds)| rounds.line(target)).collect())
}

struct Round {
    outcome: Outcome,
    cpu: Duration,
    peak: u64,
}

async fn one_round(row: Row, lab: &Lab, target: &mut Target) -> Result<Round> {
    let seconds = lab.options.round_seconds();
    let plan = Closed {
        connections: row.connections,
        prefix: target.prefix.clone(),
        key: target.key.clone(),
        rewritten: target.rewrites,
        warmup: seconds * WARMUP,
        ..Closed::new(target.addr, row.body, row.answer(), seconds)
    };
    let limit = Duration::from_secs_f64(seconds * (1.0 + WARMUP)) + LIMIT + MARGIN;
    let pids = target.pids();
    proc::reset_peak(&pids);
    let before = proc::cpu(&pids)?;
    let outcome = lab.load(&Plan::Closed(plan), limit).await?;
    target.check()?;
    Ok(Round { outcome, cpu: proc::cpu(&pids)?.saturating_sub(before), peak: proc::peak(&pids)? })
}

/// The results of each round for one target.
#[derive(Default)]
struct Rounds {
    values: Vec<Vec<Option<f64>>>,
    reconnects: u64,
    failures: Failures,
}

impl Rounds {
    fn add(&mut self, row: Row, round: &Round, target: &Target) {
        self.values.push(round.values(row, target));
        self.reconnects += round.outcome.reconnects;
        self.failures.merge(&round.outcome.failures);
    }

    fn line(self, target: &Target) -> Line {
        Line::of_rounds(target.name, self.values, self.reconnects, self.failures)
    }
}

impl Round {
    /// In the order of the columns.
    fn values(&self, row: Row, target: &Target) -> Vec<Option<f64>> {
        let all = &self.outcome;
        let rate = all.rate();
        let accounted = !target.parts.is_empty();
        let chunks = rate.filter(|_| row.stream).map(|rate| rate * f64::from(CHUNKS));
        let per_thousand =
            (accounted && all.all > 0).then(|| self.cpu.as_secs_f64() * 1000.0 / all.all as f64);
        vec![
            rate,
            all.latency.millis(0.5),
            all.latency.millis(0.99),
            all.first_byte.millis(0.5),
            all.first_byte.millis(0.99),
            chunks,
            per_thousand,
            accounted.then(|| mib(self.peak)),
        ]
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..=1023 => format!("{bytes}B"),
        1024..=1_048_575 => format!("{}KiB", bytes >> 10),
        _ => format!("{}MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_what_they_do() {
        let names: Vec<String> = Row::all().map(|row| row.name()).collect();
        assert_eq!(names[0], "plain/1/1KiB");
        assert_eq!(names[11], "stream/32/10MiB");
    }

    #[test]
    fn goals_name_columns_that_exist() {
        let columns = COLUMNS.map(|column| column.name);
        let goals: Vec<Goal> = Row::all().flat_map(|row| row.goals()).collect();
        assert_eq!(goals.len(), 10);
        assert!(goals.iter().all(|goal| columns.contains(&goal.column)));
    }
}
