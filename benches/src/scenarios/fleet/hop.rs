//! A request at a server whose worker is connected to another one, beside the same at that one. Both take turns.

use std::path::Path;

use anyhow::Result;

use crate::{
    lab::Lab,
    report::{Column, Line, Report, Section},
    scenarios::requests::{COLUMNS, P50, Row, lines},
    targets::fleet,
};

const HERE: &str = "its own server";
const THERE: &str = "another server";

/// The most that is added at one connection, in milliseconds.
const MOST: f64 = 0.4;

const ADDED: Column = Column::new("added p50 ms", 3);

pub(super) async fn measure(
    lab: &Lab,
    programs: (&Path, &Path),
    report: &mut Report,
) -> Result<()> {
    let mut fleet = fleet::launch(programs, lab.backend, &[(HERE, true), (THERE, false)]).await?;
    for row in Row::small() {
        let mut lines = lines(row, lab, &mut fleet.servers).await?;
        add_difference(&mut lines);
        report.add(Section {
            name: format!("fleet/hop/{}", row.name()),
            title: format!("through a second server: {}", row.title()),
            columns: COLUMNS.into_iter().chain([ADDED]).collect(),
            lines,
            bases: &[HERE],
            goals: if row.is_alone() { vec![ADDED.at_most(THERE, MOST)] } else { Vec::new() },
        })?;
    }
    fleet.stop().await;
    Ok(())
}

/// Adds to each line how much later half of its answers are than those of the first.
fn add_difference(lines: &mut [Line]) {
    let at = COLUMNS.iter().position(|column| column.name == P50.name).unwrap_or_default();
    let base = lines.first().and_then(|line| line.values[at]);
    for (number, line) in lines.iter_mut().enumerate() {
        let added = line.values[at].zip(base).map(|(p50, base)| p50 - base);
        line.values.push(added.filter(|_| number > 0));
        line.rounds.clear();
    }
}
