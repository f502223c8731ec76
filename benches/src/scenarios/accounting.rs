//! What keys, limits and the ledger cost: two Warrens side by side, one that counts nothing and one
//! where each request has a key with limits of every kind and is in the ledger.

use anyhow::Result;

use super::requests::{COLUMNS, RATE, Row, lines};
use crate::{
    lab::Lab,
    report::{Report, Section},
    targets::warren::{self, Accounting},
};

/// The least rate with accounting, as a share of the rate without.
const LEAST: f64 = 0.95;

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let mut targets = Vec::new();
    for accounting in [Accounting::None, Accounting::Whole] {
        targets.push(warren::launch(program, lab.backend, accounting).await?);
    }
    for row in Row::busiest() {
        report.add(Section {
            name: format!("accounting/{}", row.name()),
            title: format!("without and with keys, limits and ledger: {}", row.title()),
            columns: COLUMNS.to_vec(),
            lines: lines(row, lab, &mut targets).await?,
            bases: &["without"],
            goals: vec![RATE.at_least("with", LEAST).beside("without")],
        })?;
    }
    for target in targets {
        target.stop().await;
    }
    Ok(())
}
