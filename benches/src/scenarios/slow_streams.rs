//! Many streams open at once, each with a chunk every few seconds: what one that waits costs.
//! Each target is started afresh, so that memory left over from other work is not counted as free.

use std::time::Duration;

use anyhow::{Result, ensure};
use rustix::process::{Resource, getrlimit};

use crate::{
    cli::Kind,
    lab::{self, Lab},
    load::{
        Failures, Plan,
        slow::{Closed, Opened, Slow},
    },
    proc,
    report::{self, BACKENDS, Column, Line, Report, Section},
    targets::Target,
};

const GAP: Duration = Duration::from_secs(5);

const HOLD: Duration = Duration::from_secs(12);

const OPENING: Duration = Duration::from_secs(300);

const CLOSING: Duration = Duration::from_secs(60);

const BODY: usize = 1024;

const OPEN: Column = Column::new("open", 0);
const OPENED: Column = Column::new("opened in s", 1);
const SERVER: Column = Column::new("server KiB/stream", 1);
const WORKER: Column = Column::new("worker KiB/stream", 1);
const CHUNKS: Column = Column::new("chunks/s", 0);
const CPU: Column = Column::new("cpu s/s", 3);

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let streams = lab.options.streams();
    warn_of_file_limit(streams);
    let mut lines = Vec::new();
    for &kind in lab.launcher.kinds().iter().filter(|&&kind| kind != Kind::Bare) {
        let mut target = lab.launcher.launch(kind, streams).await?;
        let held = hold(streams, lab, &target).await;
        target.check()?;
        lines.push(held?.line(&target));
        target.stop().await;
    }
    report.add(Section {
        name: "slow-streams".into(),
        title: format!("{streams} streams at once, one chunk each {} s", GAP.as_secs()),
        columns: vec![OPEN, OPENED, SERVER, WORKER, CHUNKS, CPU],
        lines,
        bases: BACKENDS,
        goals: vec![
            SERVER.at_most(Kind::Warren.name(), 14.0),
            WORKER.at_most(Kind::Warren.name(), 12.0),
        ],
    })
}

/// Each process needs a file per stream; nginx's share two of each among them.
pub(super) fn warn_of_file_limit(streams: u32) {
    let needed = u64::from(streams) + 512;
    if let Some(soft) = getrlimit(Resource::Nofile).current.filter(|soft| *soft < needed) {
        report::note(&format!(
            "{streams} streams need {needed} open files per process; the limit is {soft}"
        ));
    }
}

struct StreamCosts {
    opened: Opened,
    closed: Closed,
    /// Memory before and while, in bytes.
    server: Option<(u64, u64)>,
    worker: Option<(u64, u64)>,
    /// Processor seconds per second while all are held.
    cpu: f64,
}

async fn hold(streams: u32, lab: &Lab, target: &Target) -> Result<StreamCosts> {
    let gap_ms = u64::try_from(GAP.as_millis())?;
    let plan = Slow { addr: target.addr, streams, body: BODY, gap_ms };
    let before = (target.resident("server"), target.resident("worker"));
    let mut load = lab.start_load(&Plan::Slow(plan))?;
    let opened: Opened = lab::outcome(&mut load, OPENING).await?;
    ensure!(opened.open > 0, "no stream opened: {:?}", opened.failures);
    let cpu = cpu_per_second(target).await?;
    let server = before.0.zip(target.resident("server"));
    let worker = before.1.zip(target.resident("worker"));
    load.close_stdin();
    let closed = lab::outcome(&mut load, CLOSING).await?;
    load.stop().await;
    Ok(StreamCosts { opened, closed, server, worker, cpu })
}

async fn cpu_per_second(target: &Target) -> Result<f64> {
    let pids = target.pids();
    let before = proc::cpu(&pids)?;
    tokio::time::sleep(HOLD).await;
    Ok(proc::cpu(&pids)?.saturating_sub(before).as_secs_f64() / HOLD.as_secs_f64())
}

impl StreamCosts {
    fn line(self, target: &Target) -> Line {
        let open = self.opened.open as f64;
        let per_stream =
            |(before, held): (u64, u64)| held.saturating_sub(before) as f64 / 1024.0 / open;
        let mut failures: Failures = self.opened.failures;
        failures.add_many("ended early", self.closed.ended);
        let values = vec![
            Some(open),
            Some(self.opened.seconds),
            self.server.map(per_stream),
            self.worker.map(per_stream),
            Some(self.closed.chunks as f64 / self.closed.seconds),
            (!target.parts.is_empty()).then_some(self.cpu),
        ];
        Line::new(target.name, values, failures)
    }
}
