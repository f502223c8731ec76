//! The cost of keys, limits and the ledger: two Warrens side by side, one that counts nothing and one
//! where each request has a key with limits of every kind and is in the ledger.

use anyhow::Result;

use super::requests::{COLUMNS, RATE, Row, lines};
use crate::{
    lab::Lab,
    report::{Report, Section},
    targets::{
        postgres::Postgres,
        warren::{self, Accounting},
    },
};

/// The least rate with accounting, as a share of the rate without.
const LEAST: f64 = 0.95;

/// The least rate with limits that several servers share, as a share of the rate of one that counts alone.
const LEAST_SHARED: f64 = 0.9;

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

/// The same limits, counted by one server alone and in a database that several share.
pub(crate) async fn measure_shared(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let Some(postgres) = Postgres::launch().await? else { return Ok(()) };
    let url = postgres.url();
    let mut targets = Vec::new();
    for accounting in [Accounting::Whole, Accounting::Shared(&url)] {
        targets.push(warren::launch(program, lab.backend, accounting).await?);
    }
    for row in Row::busiest() {
        report.add(Section {
            name: format!("shared/{}", row.name()),
            title: format!("keys and limits of one server and of several: {}", row.title()),
            columns: COLUMNS.to_vec(),
            lines: lines(row, lab, &mut targets).await?,
            bases: &["with"],
            goals: vec![RATE.at_least("shared", LEAST_SHARED).beside("with")],
        })?;
    }
    for target in targets {
        target.stop().await;
    }
    postgres.stop().await;
    Ok(())
}
