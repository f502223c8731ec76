//! A Warren server without load: time from starting the program to its first answer, memory while
//! idle, size of the binary.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::mib;
use crate::{
    cli::Kind,
    load::Failures,
    proc,
    report::{BACKENDS, Bound, Column, Goal, Line, Report, Section},
    stats::Times,
    suite::Lab,
    targets::warren::{Started, start_server},
};

/// How long a server is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

const READY50: Column = Column::new("ready p50 ms", 1);
const READY_MAX: Column = Column::new("ready max ms", 1);
const IDLE: Column = Column::new("idle MiB", 1);
const BINARY: Column = Column::new("binary MiB", 1);

/// Starts and stops it several times.
pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let starts = if lab.options.quick { 3 } else { 10 };
    let (mut ready, mut idle) = (Times::new(), None);
    for start in 1..=starts {
        let started = start_server(program).await?;
        ready.add(started.ready);
        idle = idle.or(idle_memory(&started, start == starts).await?);
        started.process.stop().await;
    }
    report.add(section(starts, &ready, idle, program)?)
}

async fn idle_memory(started: &Started, last: bool) -> Result<Option<u64>> {
    if !last {
        return Ok(None);
    }
    tokio::time::sleep(SETTLE).await;
    Ok(Some(proc::resident(&[started.process.pid()])?))
}

fn section(starts: u32, ready: &Times, idle: Option<u64>, program: &Path) -> Result<Section> {
    let binary = program.metadata()?.len();
    let values = vec![ready.millis(0.5), ready.millis(1.0), idle.map(mib), Some(mib(binary))];
    let at_most = |column: Column, most| {
        let bound = Bound::AtMost(most);
        Goal { line: Kind::Warren.name(), column: column.name, ratio_to: None, bound }
    };
    Ok(Section {
        name: "startup".into(),
        title: format!("a server alone, started {starts} times"),
        columns: vec![READY50, READY_MAX, IDLE, BINARY],
        lines: vec![Line {
            target: Kind::Warren.name(),
            values,
            reconnects: 0,
            failures: Failures::default(),
        }],
        bases: BACKENDS,
        goals: vec![at_most(READY50, 100.0), at_most(IDLE, 20.0), at_most(BINARY, 25.0)],
    })
}
