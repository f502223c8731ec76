//! A whole screen, sent again to a client that is attached already: as it is after a lag. The time is
//! from asking for it until it was read, without that of a message there and back that costs nothing
//! (`keepalive`), which is measured in between: of both the median.

use std::path::Path;

use anyhow::Result;

use super::{Part, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Plan,
        resync::{Outcome, Resync},
    },
    programs::flood::Kind,
    report::{Column, Line, Section},
    stats::Times,
};

const SCREEN: Column = Column::new("screen bytes", 0);
const MESSAGE: Column = Column::new("message bytes", 0);
const WHOLE: Column = Column::new("p50 µs", 0);
const WHOLE99: Column = Column::new("p99 µs", 0);
const TRIP: Column = Column::new("trip p50 µs", 0);
const ADDED: Column = Column::new("p50 over trip µs", 0);

/// The most bytes, as they are sent, and the most time.
const MOST_BYTES: f64 = 10.0 * 1024.0;
const MOST_TIME: f64 = 1000.0;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let times = if lab.options.quick { 50 } else { 500 };
    let (target, daemon) = launch(lab, program).await?;
    let mut lines = Vec::new();
    for kind in Kind::ALL {
        let plan = Resync { daemon: daemon.clone(), kind, times };
        lines.push(one(kind, &load(lab, Plan::Resync(plan)).await?));
    }
    target.stop().await;
    Ok(section(lines))
}

fn one(kind: Kind, outcome: &Outcome) -> Line {
    let micros = |times: &Times, share| times.millis(share).map(|millis| millis * 1e3);
    let (whole, trip) = (micros(&outcome.times, 0.5), micros(&outcome.trips, 0.5));
    line(
        kind.name(),
        vec![
            Some(outcome.screen as f64),
            Some(outcome.message as f64),
            whole,
            micros(&outcome.times, 0.99),
            trip,
            whole.zip(trip).map(|(whole, trip)| whole - trip),
        ],
    )
}

fn section(lines: Vec<Line>) -> Section {
    let goals = Kind::ALL.iter().flat_map(|kind| {
        [(MESSAGE, MOST_BYTES), (ADDED, MOST_TIME)]
            .map(|(column, most)| column.at_most(kind.name(), most))
    });
    Section {
        name: Part::Resync.name().into(),
        title: "a screen of 80×24 sent whole: of text, of words in colours, of coloured cells"
            .into(),
        columns: vec![SCREEN, MESSAGE, WHOLE, WHOLE99, TRIP, ADDED],
        goals: goals.collect(),
        lines,
        bases: &[],
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_way_there_and_back_is_not_counted() {
        let pairs = |micros| {
            let mut times = Times::default();
            times.add(Duration::from_micros(micros));
            times
        };
        let outcome = Outcome { screen: 4000, message: 5000, times: pairs(250), trips: pairs(50) };
        let line = one(Kind::Colour, &outcome);
        assert!((line.values[5].unwrap() - 200.0).abs() < 1.0, "{line:?}");
        assert_eq!(section(vec![line]).goals.len(), 6);
    }
}
