//! A key, from typing it until the program's answer was read: at a terminal's bare master, and as a
//! client of a daemon; alone, and beside another terminal that floods as fast as it is read. They take
//! turns. Beside a flood all of the machine is busy, so that the bare master is slower there, too.
//!
//! `tcp` has the program at the far end of a bare connection. A client of a daemon needs such a connection
//! beside the terminal, too.

use std::path::Path;

use anyhow::Result;

use super::{Part, RAW, WARREN, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Daemon, Plan,
        keys::{Keys, Outcome},
        terminal::TerminalKind,
    },
    report::{Column, Goal, Line, Section},
    stats::Times,
};

const P50: Column = Column::new("p50 µs", 0);
const P99: Column = Column::new("p99 µs", 0);
const ADDED50: Column = Column::new("p50 over raw µs", 0);
const ADDED99: Column = Column::new("p99 over raw µs", 0);
const FLOOD: Column = Column::new("flood MB/s", 0);

const TCP: &str = "tcp";
const RAW_FLOOD: &str = "raw, flood";
const WARREN_FLOOD: &str = "warren, flood";

/// How much later half of the keys may come back than from the bare master, where the machine is quiet.
const MOST: f64 = 100.0;
/// How much later than by way of the bare master and a bare connection, and how much later still beside a
/// flood, both as it is on a busy machine.
const MOST_OF_OURS: f64 = 40.0;
const MOST_BESIDE: f64 = 80.0;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let (target, daemon) = launch(lab, program).await?;
    let mut all = lines(&daemon);
    let keys = if lab.options.quick { 200 } else { 1000 };
    for at in lab.turns(all.len()) {
        all[at].add(lab, keys).await?;
    }
    target.stop().await;
    Ok(section(&all))
}

fn lines(daemon: &Daemon) -> [Sum; 5] {
    let warren = || TerminalKind::Warren(daemon.clone());
    [
        Sum::new(RAW, TerminalKind::Bare, false),
        Sum::new(TCP, TerminalKind::Tcp, false),
        Sum::new(WARREN, warren(), false),
        Sum::new(RAW_FLOOD, TerminalKind::Bare, true),
        Sum::new(WARREN_FLOOD, warren(), true),
    ]
}

struct Sum {
    name: &'static str,
    way: TerminalKind,
    flood: bool,
    times: Times,
    rates: Vec<f64>,
}

impl Sum {
    fn new(name: &'static str, way: TerminalKind, flood: bool) -> Self {
        Self { name, way, flood, times: Times::default(), rates: Vec::new() }
    }

    async fn add(&mut self, lab: &Lab, keys: u32) -> Result<()> {
        let plan = Keys { way: self.way.clone(), flood: self.flood, keys };
        let outcome: Outcome = load(lab, Plan::Keys(plan)).await?;
        self.times.merge(&outcome.times);
        self.rates.extend(outcome.flood);
        Ok(())
    }

    fn micros(&self, share: f64) -> Option<f64> {
        self.times.millis(share).map(|millis| millis * 1e3)
    }

    /// `base`: the bare master under the same conditions.
    fn line(&self, base: &Self) -> Line {
        let is_ours = [WARREN, WARREN_FLOOD].contains(&self.name);
        let added = |share| {
            let pair = self.micros(share).zip(base.micros(share)).filter(|_| is_ours);
            pair.map(|(micros, base)| micros - base)
        };
        let rate = self.rates.iter().sum::<f64>() / self.rates.len() as f64;
        line(
            self.name,
            vec![
                self.micros(0.5),
                self.micros(0.99),
                added(0.5),
                added(0.99),
                (!self.rates.is_empty()).then_some(rate),
            ],
        )
    }
}

fn section(all: &[Sum; 5]) -> Section {
    let [raw, tcp, warren, raw_flood, warren_flood] = all;
    let lines = vec![
        raw.line(raw),
        tcp.line(raw),
        warren.line(raw),
        raw_flood.line(raw_flood),
        warren_flood.line(raw_flood),
    ];
    let goals = goals(tcp.micros(0.5), lines[2].values[2]);
    Section {
        name: Part::Echo.name().into(),
        title:
            "one key at a time, until it comes back; beside a flood compared with the bare master \
                beside one"
                .into(),
        columns: vec![P50, P99, ADDED50, ADDED99, FLOOD],
        lines,
        bases: &[],
        goals,
    }
}

/// Given the times of a bare connection and what the daemon adds alone.
fn goals(tcp: Option<f64>, alone: Option<f64>) -> Vec<Goal> {
    let quiet = [WARREN, WARREN_FLOOD].map(|line| ADDED50.at_most(line, MOST));
    let busy = [
        tcp.map(|tcp| ADDED50.at_most(WARREN, (tcp + MOST_OF_OURS).round())),
        alone.map(|alone| ADDED50.at_most(WARREN_FLOOD, (alone + MOST_BESIDE).round())),
    ];
    quiet.into_iter().chain(busy.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::report::Bound;

    #[test]
    fn lines_are_compared_with_the_bare_master_beside_the_same() {
        let daemon =
            Daemon { addr: ([127, 0, 0, 1], 1).into(), token: String::new(), pid: 1, node: None };
        let mut all = lines(&daemon);
        for (sum, micros) in all.iter_mut().zip([30, 25, 90, 300, 380]) {
            sum.times.add(Duration::from_micros(micros));
        }
        all[4].rates.extend([100.0, 120.0]);
        let section = section(&all);
        let added: Vec<_> = section.lines.iter().map(|line| line.values[2]).collect();
        assert_eq!((added[0], added[1], added[3]), (None, None, None));
        assert!((added[2].unwrap() - 60.0).abs() < 1.0, "{added:?}");
        assert!((added[4].unwrap() - 80.0).abs() < 1.0, "{added:?}");
        assert_eq!(section.lines[4].values[4], Some(110.0));
        assert_eq!(section.lines[0].values[4], None);
    }

    #[test]
    fn on_a_busy_machine_a_bare_connection_is_the_measure() {
        let goals = goals(Some(70.0), Some(95.4));
        let bounds = goals.iter().map(|goal| (goal.line, goal.bound)).collect::<Vec<_>>();
        assert_eq!(bounds.len(), 4, "{bounds:?}");
        assert!(matches!(bounds[2], (WARREN, Bound::AtMost(most)) if most == 110.0), "{bounds:?}");
        assert!(
            matches!(bounds[3], (WARREN_FLOOD, Bound::AtMost(most)) if most == 175.0),
            "{bounds:?}"
        );
    }
}
