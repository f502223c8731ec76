//! A fixed amount of text through a terminal to one client. All take turns; each is timed from the
//! key that begins it until the program's last word was seen. `raw` has nothing between; `tmux` sends
//! what changed on its screen, and not what was written; `engine` is the same text through a terminal's
//! state machine alone, which is what keeping a screen costs beside serving it.

use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::{Part, RAW, WARREN, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Plan,
        engine::Engine,
        flood::{Flood, Outcome},
        terminal::TerminalKind,
    },
    programs::flood::Kind,
    report::{self, Column, Goal, Line, Section},
};

const RATE: Column = Column::new("MB/s", 1);
const RECEIVED: Column = Column::new("MB received", 1);
const CPU: Column = Column::new("cpu s", 2);
const RESYNCS: Column = Column::new("resyncs", 0);

const TTYD: &str = "ttyd";
const TMUX: &str = "tmux";
const ENGINE: &str = "engine";

/// Megabytes that are written in each round.
const MEGABYTES: u64 = 105;
const FEW: u64 = 21;

/// The least rate with plain text and with colours, as shares of the raw loop's.
const LEAST: f64 = 0.85;
const LEAST_COLOURED: f64 = 0.9;

pub(super) async fn measure(lab: &Lab, program: &Path, kind: Kind) -> Result<Section> {
    let (target, daemon) = launch(lab, program).await?;
    let mut all = vec![Sum::new(RAW, Some(TerminalKind::Bare))];
    for (name, version, way) in
        [(TTYD, "--version", TerminalKind::Ttyd), (TMUX, "-V", TerminalKind::Tmux)]
    {
        match is_installed(name, version).await {
            true => all.push(Sum::new(name, Some(way))),
            false => report::note(&format!("{name} is not installed: left out")),
        }
    }
    all.push(Sum::new(WARREN, Some(TerminalKind::Warren(daemon))));
    all.push(Sum::new(ENGINE, None));
    let megabytes = if lab.options.quick { FEW } else { MEGABYTES };
    for at in lab.turns(all.len()) {
        all[at].add(lab, kind, megabytes).await?;
    }
    target.stop().await;
    Ok(section(kind, megabytes, &all))
}

async fn is_installed(program: &str, version: &str) -> bool {
    let asked = Command::new(program).arg(version).kill_on_drop(true).output().await;
    asked.is_ok_and(|output| output.status.success())
}

struct Sum {
    name: &'static str,
    /// `None`: through the engine alone.
    way: Option<TerminalKind>,
    rounds: f64,
    all: Outcome,
}

impl Sum {
    fn new(name: &'static str, way: Option<TerminalKind>) -> Self {
        Self { name, way, rounds: 0.0, all: Outcome { cpu: Some(0.0), ..Outcome::default() } }
    }

    async fn add(&mut self, lab: &Lab, kind: Kind, megabytes: u64) -> Result<()> {
        let outcome: Outcome = match self.way.clone() {
            None => load(lab, Plan::Engine(Engine { kind, megabytes })).await?,
            Some(way) => load(lab, Plan::Flood(Flood { way, kind, megabytes })).await?,
        };
        self.count(&outcome);
        Ok(())
    }

    fn count(&mut self, outcome: &Outcome) {
        self.rounds += 1.0;
        self.all.written += outcome.written;
        self.all.seconds += outcome.seconds;
        self.all.received += outcome.received;
        self.all.cpu = self.all.cpu.zip(outcome.cpu).map(|(all, cpu)| all + cpu);
        self.all.resyncs += outcome.resyncs;
    }

    /// Whether other bytes came than from the bare master, though all should have. Where output was left
    /// out by design, there is nothing to compare.
    fn has_lost(&self, raw: &Self) -> bool {
        let gives_all = [TTYD, WARREN].contains(&self.name) && self.all.resyncs == 0;
        gives_all && self.all.received != raw.all.received
    }

    /// Megabytes a second; of the others what a round brought.
    fn line(&self) -> Line {
        let (all, each) = (&self.all, |value: f64| value / self.rounds);
        let is_sent = self.way.is_some();
        line(
            self.name,
            vec![
                Some(all.written as f64 / 1e6 / all.seconds),
                is_sent.then(|| each(all.received as f64 / 1e6)),
                all.cpu.map(each),
                (self.name == WARREN).then(|| each(all.resyncs as f64)),
            ],
        )
    }
}

fn section(kind: Kind, megabytes: u64, all: &[Sum]) -> Section {
    let mut lines: Vec<Line> = all.iter().map(Sum::line).collect();
    let raw = all.iter().find(|sum| sum.name == RAW);
    for (sum, line) in all.iter().zip(&mut lines) {
        if raw.is_some_and(|raw| sum.has_lost(raw)) {
            line.failures.add("other bytes than the bare master gives");
        }
    }
    let text = match kind {
        Kind::Plain => "plain text",
        Kind::Colour => "text with a colour for each word",
        Kind::Repaint => "repaints of the whole screen",
    };
    Section {
        name: Part::Flood(kind).name().into(),
        title: format!(
            "{megabytes} MB of {text} through a terminal to one client; processor time of what stands \
             between, for each round"
        ),
        columns: vec![RATE, RECEIVED, CPU, RESYNCS],
        goals: goals(kind, &lines),
        lines,
        bases: &[RAW, TTYD],
    }
}

fn goals(kind: Kind, lines: &[Line]) -> Vec<Goal> {
    let mut goals = vec![RATE.at_least(WARREN, 1.0).beside(TTYD)];
    let least = match kind {
        Kind::Plain => Some(LEAST),
        Kind::Colour => Some(LEAST_COLOURED),
        Kind::Repaint => None,
    };
    goals.extend(least.map(|least| RATE.at_least(WARREN, least).beside(RAW)));
    let cpu = |name| lines.iter().find(|line| line.target == name)?.values.get(2).copied()?;
    if let Some((ttyd, engine)) = cpu(TTYD).zip(cpu(ENGINE)) {
        goals.push(CPU.at_most(WARREN, round(ttyd + engine)));
    }
    goals
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Bound;

    fn sum(name: &'static str, way: Option<TerminalKind>, seconds: f64, cpu: f64) -> Sum {
        let mut sum = Sum::new(name, way);
        let received = 10_500_000;
        let outcome =
            Outcome { written: 10_000_000, seconds, received, cpu: Some(cpu), resyncs: 2 };
        sum.count(&outcome);
        sum.count(&outcome);
        sum
    }

    #[test]
    fn rates_are_of_all_rounds_and_the_rest_of_each() {
        let line = sum(WARREN, Some(TerminalKind::Bare), 0.5, 0.25).line();
        assert_eq!(line.values, [Some(20.0), Some(10.5), Some(0.25), Some(2.0)]);
        let line = sum(ENGINE, None, 0.5, 0.25).line();
        assert_eq!(line.values, [Some(20.0), None, Some(0.25), None]);
    }

    #[test]
    fn bytes_that_are_missing_are_a_failure_unless_they_were_left_out() {
        let mut all = [
            sum(RAW, Some(TerminalKind::Bare), 0.5, 0.1),
            sum(WARREN, Some(TerminalKind::Bare), 0.5, 0.1),
            sum(TMUX, Some(TerminalKind::Tmux), 0.5, 0.1),
        ];
        all.iter_mut().skip(1).for_each(|sum| sum.all.received -= 1);
        let failed = |all: &[Sum]| -> Vec<u64> {
            let lines = section(Kind::Plain, 20, all).lines;
            lines.iter().map(|line| line.failures.total()).collect()
        };
        assert_eq!(failed(&all), [0, 0, 0], "with resyncs");
        all[1].all.resyncs = 0;
        assert_eq!(failed(&all), [0, 1, 0]);
    }

    #[test]
    fn the_most_processor_time_is_that_of_ttyd_and_of_the_engine() {
        let all = [
            sum(TTYD, Some(TerminalKind::Ttyd), 0.5, 0.35),
            sum(ENGINE, None, 0.5, 1.0),
            sum(WARREN, Some(TerminalKind::Bare), 0.5, 1.2),
        ];
        let section = section(Kind::Plain, 20, &all);
        let bounds = section.goals.iter().map(|goal| (goal.column, goal.bound));
        let cpu = bounds.filter(|(column, _)| *column == CPU.name).collect::<Vec<_>>();
        assert!(matches!(cpu[..], [(_, Bound::AtMost(most))] if most == 1.35), "{cpu:?}");
        let section = super::section(Kind::Repaint, 20, &all[1..]);
        assert_eq!(section.goals.len(), 1, "without ttyd nothing is compared with it");
    }
}
