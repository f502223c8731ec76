//! A Warren server without load: time from starting the program to its first answer, memory while
//! idle, size of the binary.

use std::{path::Path, time::Duration};

use anyhow::Result;

use crate::{
    cli::Kind,
    lab::Lab,
    load::Failures,
    proc,
    report::{BACKENDS, Column, Line, Report, Section, mib},
    stats::Times,
    targets::warren::{Started, start_server},
};

/// How long a server is left alone before its memory is read.
const SETTLE: Duration = Duration::from_secs(1);

const READY50: Column = Column::new("ready p50 ms", 1);
const READY_MAX: Column = Column::new("ready max ms", 1);
const IDLE: Column = Column::new("idle MiB", 1);
const BINARY: Column = Column::new("binary MiB", 1);

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let starts = if lab.options.quick { 3 } else { 10 };
    let (mut ready, mut idle) = (Times::default(), None);
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
    let warren = Kind::Warren.name();
    Ok(Section {
        name: "startup".into(),
        title: format!("a server alone, started {starts} times"),
        columns: vec![READY50, READY_MAX, IDLE, BINARY],
        lines: vec![Line::new(warren, values, Failures::default())],
        bases: BACKENDS,
        goals: vec![
            READY50.at_most(warren, 100.0),
            IDLE.at_most(warren, 20.0),
            BINARY.at_most(warren, 25.0),
        ],
    })
}
