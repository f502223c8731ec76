//! Many clients of one terminal that writes at its own pace: all that read, and the same beside some
//! that never do. The clients are one process with one thread, so that the gaps are those of a machine
//! that also has to be all of the clients; the two lines are to be compared with each other. They take
//! turns, each with a daemon of its own.

use std::path::Path;

use anyhow::Result;

use super::{Part, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Plan,
        crowd::{Crowd, Outcome},
    },
    programs::flood::{self, Kind},
    report::{Column, Line, Section, mib},
    stats::Times,
};

const FINISHED: Column = Column::new("finished", 0);
const LEAST: Column = Column::new("least MB", 1);
const LARGEST: Column = Column::new("most MB", 1);
const MISSED: Column = Column::new("missed", 0);
const RATE: Column = Column::new("MB/s", 2);
const P50: Column = Column::new("gap p50 ms", 1);
const P99: Column = Column::new("gap p99 ms", 1);
const MAX: Column = Column::new("gap max ms", 0);
const PEAK: Column = Column::new("peak MiB", 0);
const GROWN: Column = Column::new("grown MiB", 0);
const CPU: Column = Column::new("cpu s", 2);

const READING: &str = "all read";
const STALLED: &str = "some stall";

/// Clients that read, and clients that do not.
const CLIENTS: u32 = 180;
const SILENT: u32 = 20;

/// The terminal's output in a second, in megabytes.
const PACE: f64 = 10.0;

/// How much of that pace must be seen: the last piece takes its time.
const KEPT: f64 = 0.98;

/// How much longer the gaps may be because of clients that do not read.
const LONGER: f64 = 1.2;

/// The most memory that all clients together may cost the daemon, in MiB: 256 KiB in its own queue and
/// as much on its way out for each, and the terminal's own log.
const BOUND: f64 = 102.0;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let seconds = if lab.options.quick { 2 } else { 6 };
    let megabytes = seconds * PACE as u64;
    let mut sums = [Sum::new(), Sum::new()];
    for at in lab.turns(sums.len()) {
        let (target, daemon) = launch(lab, program).await?;
        let stalled = [0, SILENT][at];
        let plan = Crowd { daemon, reading: CLIENTS, stalled, megabytes, pace: PACE };
        sums[at].add(&load(lab, Plan::Crowd(plan)).await?);
        target.stop().await;
    }
    let [reading, stalled] = sums;
    let written = flood::written(Kind::Plain, megabytes);
    let lines = vec![reading.line(READING, written), stalled.line(STALLED, written)];
    Ok(section(lines))
}

/// All rounds of one line: the worst of each.
struct Sum {
    finished: u32,
    bytes: (u64, u64),
    missed: u64,
    seconds: f64,
    gaps: Times,
    memory: Option<[u64; 2]>,
    cpu: Option<f64>,
}

impl Sum {
    fn new() -> Self {
        Self {
            finished: u32::MAX,
            bytes: (u64::MAX, 0),
            missed: 0,
            seconds: 0.0,
            gaps: Times::default(),
            memory: None,
            cpu: None,
        }
    }

    fn add(&mut self, outcome: &Outcome) {
        self.finished = self.finished.min(outcome.finished);
        self.bytes = (self.bytes.0.min(outcome.least), self.bytes.1.max(outcome.most));
        self.missed += outcome.missed;
        self.seconds = self.seconds.max(outcome.seconds);
        self.gaps.merge(&outcome.gaps);
        self.memory = self
            .memory
            .max(outcome.memory.map(|[before, peak]| [peak.saturating_sub(before), peak]));
        self.cpu = outcome.cpu.map_or(self.cpu, |cpu| Some(self.cpu.unwrap_or(0.0).max(cpu)));
    }

    fn line(self, name: &'static str, written: u64) -> Line {
        line(
            name,
            vec![
                Some(f64::from(self.finished)),
                Some(self.bytes.0 as f64 / 1e6),
                Some(self.bytes.1 as f64 / 1e6),
                Some(self.missed as f64),
                Some(written as f64 / 1e6 / self.seconds),
                self.gaps.millis(0.5),
                self.gaps.millis(0.99),
                self.gaps.millis(1.0),
                self.memory.map(|[_, peak]| mib(peak)),
                self.memory.map(|[grown, _]| mib(grown)),
                self.cpu,
            ],
        )
    }
}

fn section(lines: Vec<Line>) -> Section {
    Section {
        name: Part::Clients.name().into(),
        title: format!(
            "{CLIENTS} clients of one terminal that writes {PACE} MB/s, and the same beside {SILENT} \
             that never read; the worst of all rounds"
        ),
        columns: vec![FINISHED, LEAST, LARGEST, MISSED, RATE, P50, P99, MAX, PEAK, GROWN, CPU],
        lines,
        bases: &[READING],
        goals: vec![
            FINISHED.at_least(STALLED, f64::from(CLIENTS)),
            MISSED.at_most(STALLED, 0.0),
            RATE.at_least(STALLED, PACE * KEPT),
            P99.at_most(STALLED, LONGER).beside(READING),
            GROWN.at_most(STALLED, BOUND),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_all_rounds_is_told() {
        let mut sum = Sum::new();
        let outcome = |finished, seconds, peak| Outcome {
            finished,
            least: 20_000_000,
            most: 20_000_000,
            missed: 1,
            seconds,
            memory: Some([10 << 20, peak]),
            cpu: Some(seconds),
            ..Outcome::default()
        };
        sum.add(&outcome(180, 2.0, 30 << 20));
        sum.add(&outcome(179, 4.0, 20 << 20));
        let line = sum.line(STALLED, 20_000_000);
        let values = &line.values;
        assert_eq!(values[..5], [179.0, 20.0, 20.0, 2.0, 5.0].map(Some));
        assert_eq!(values[8..], [30.0, 20.0, 4.0].map(Some));
    }

    #[test]
    fn goals_name_lines_and_columns_that_exist() {
        let section = section(vec![Sum::new().line(READING, 20), Sum::new().line(STALLED, 20)]);
        for goal in &section.goals {
            assert!(section.lines.iter().any(|line| line.target == goal.line));
            assert!(section.columns.iter().any(|column| column.name == goal.column));
        }
    }
}
