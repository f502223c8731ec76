//! A key, and a flood, of a terminal whose machine is another member of the workspace's cluster: as its
//! own client, and over one hop, as a client of the other member. They take turns. What the hop adds to
//! a key is measured without a flood; beside one all of the machine is busy.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};

use super::{Part, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Daemon, Plan,
        keys::{Keys, Outcome},
        terminal::TerminalKind,
    },
    report::{Column, Line, Section},
    stats::Times,
    targets::{eventually, workspace},
};

/// How long the two members may take to find each other.
const CONNECTS: Duration = Duration::from_secs(30);

const P50: Column = Column::new("p50 µs", 0);
const P99: Column = Column::new("p99 µs", 0);
const ADDED50: Column = Column::new("p50 over direct µs", 0);
const FLOOD: Column = Column::new("flood MB/s", 0);
const SHARE: Column = Column::new("flood ÷ direct", 2);

const DIRECT: &str = "direct";
const HOP: &str = "one hop";
const DIRECT_FLOOD: &str = "direct, flood";
const HOP_FLOOD: &str = "one hop, flood";

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let (owner, entry, ways) = workspace::launch_pair(program, lab.program()).await?;
    let is_linked = async || ask(lab, &ways[1], false, 1).await.is_ok();
    ensure!(eventually(CONNECTS, is_linked).await, "the two members are not linked");
    let mut all = lines(&ways);
    let keys = if lab.options.quick { 200 } else { 1000 };
    for at in lab.turns(all.len()) {
        let sum = &mut all[at];
        let outcome = ask(lab, &sum.way, sum.flood, keys).await?;
        sum.times.merge(&outcome.times);
        sum.rates.extend(outcome.flood);
    }
    entry.stop().await;
    owner.stop().await;
    Ok(section(&all))
}

async fn ask(lab: &Lab, way: &Daemon, flood: bool, keys: u32) -> Result<Outcome> {
    let way = TerminalKind::Warren(way.clone());
    load(lab, Plan::Keys(Keys { way, flood, keys })).await
}

struct Sum {
    name: &'static str,
    way: Daemon,
    flood: bool,
    times: Times,
    rates: Vec<f64>,
}

fn lines([direct, hop]: &[Daemon; 2]) -> [Sum; 4] {
    let sum = |name, way: &Daemon, flood| {
        let (times, rates) = (Times::default(), Vec::new());
        Sum { name, way: way.clone(), flood, times, rates }
    };
    [
        sum(DIRECT, direct, false),
        sum(HOP, hop, false),
        sum(DIRECT_FLOOD, direct, true),
        sum(HOP_FLOOD, hop, true),
    ]
}

impl Sum {
    fn micros(&self, share: f64) -> Option<f64> {
        self.times.millis(share).map(|millis| millis * 1e3)
    }

    fn rate(&self) -> Option<f64> {
        let sum: f64 = self.rates.iter().sum();
        (!self.rates.is_empty()).then(|| sum / self.rates.len() as f64)
    }

    /// `base`: the terminal's own client under the same conditions.
    fn line(&self, base: &Self) -> Line {
        let own = self.name != base.name;
        let pair = |one: Option<f64>, other| one.zip(other).filter(|_| own);
        let added = pair(self.micros(0.5), base.micros(0.5)).map(|(micros, base)| micros - base);
        let share = pair(self.rate(), base.rate()).map(|(rate, base)| rate / base);
        line(self.name, vec![self.micros(0.5), self.micros(0.99), added, self.rate(), share])
    }
}

fn section(all: &[Sum; 4]) -> Section {
    let [direct, hop, direct_flood, hop_flood] = all;
    Section {
        name: Part::Hop.name().into(),
        title:
            "one key at a time, until it comes back, from a terminal of another member; and what \
            a terminal there gives that floods"
                .into(),
        columns: vec![P50, P99, ADDED50, FLOOD, SHARE],
        lines: vec![
            direct.line(direct),
            hop.line(direct),
            direct_flood.line(direct_flood),
            hop_flood.line(direct_flood),
        ],
        bases: &[],
        goals: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_is_compared_with_the_terminals_own_client_beside_the_same() {
        let addr = ([127, 0, 0, 1], 1).into();
        let daemon = Daemon { addr, token: String::new(), pid: 1, node: None };
        let mut all = lines(&[daemon.clone(), daemon]);
        for (sum, micros) in all.iter_mut().zip([100, 250, 300, 700]) {
            sum.times.add(Duration::from_micros(micros));
        }
        all[2].rates.push(100.0);
        all[3].rates.extend([40.0, 60.0]);
        let section = section(&all);
        let added = section.lines[1].values[2].unwrap();
        assert!((added - 150.0).abs() < 1.0, "{added}");
        assert_eq!(section.lines[0].values[2..], [None, None, None]);
        assert_eq!(section.lines[3].values[3..], [Some(50.0), Some(0.5)]);
    }
}
