//! Clients that hang up in the middle of a stream that is silent: how long until the backend sees
//! its request aborted.

use std::time::Duration;

use anyhow::Result;

use crate::{
    cli::Kind,
    lab::Lab,
    load::{
        Plan,
        cancel::{Cancel, Outcome},
    },
    report::{BACKENDS, Column, Line, Report, Section},
    targets::Target,
};

const LIMIT: Duration = Duration::from_secs(300);

const SEEN: Column = Column::new("aborts", 0);
const P50: Column = Column::new("abort p50 ms", 3);
const P99: Column = Column::new("abort p99 ms", 3);
const MAX: Column = Column::new("abort max ms", 3);

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let count = if lab.options.quick { 50 } else { 500 };
    let mut lines = Vec::new();
    for &kind in lab.launcher.kinds() {
        let mut target = lab.launcher.launch(kind, 64).await?;
        let plan = Plan::Cancel(Cancel { addr: target.addr, backend: lab.backend, count });
        let outcome: Outcome = lab.load(&plan, LIMIT).await?;
        target.check()?;
        lines.push(line(outcome, &target));
        target.stop().await;
    }
    report.add(Section {
        name: "cancel".into(),
        title: format!("{count} clients hang up mid-stream; time until the backend sees it"),
        columns: vec![SEEN, P50, P99, MAX],
        lines,
        bases: BACKENDS,
        goals: vec![P99.at_most(Kind::Warren.name(), 50.0)],
    })
}

fn line(outcome: Outcome, target: &Target) -> Line {
    let latency = &outcome.latency;
    let values = vec![
        Some(outcome.seen as f64),
        latency.millis(0.5),
        latency.millis(0.99),
        latency.millis(1.0),
    ];
    Line::new(target.name, values, outcome.failures)
}
