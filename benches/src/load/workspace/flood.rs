//! A program that writes as fast as it is read, until its last word was seen.

use std::time::Instant;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::terminal::{TerminalKind, open, until};
use crate::{
    proc,
    programs::{
        OVER, READY,
        flood::{self, Kind},
    },
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Flood {
    pub(crate) way: TerminalKind,
    pub(crate) kind: Kind,
    pub(crate) megabytes: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) written: u64,
    /// From the key that began it until its last word was seen.
    pub(crate) seconds: f64,
    pub(crate) received: u64,
    /// Processor seconds of what stands between, where they could be read.
    pub(crate) cpu: Option<f64>,
    pub(crate) resyncs: u64,
}

pub(super) fn run(plan: &Flood) -> Result<Outcome> {
    let megabytes = plan.megabytes.to_string();
    let mut terminal = open(&plan.way, &["flood", plan.kind.name(), &megabytes])?;
    until(&mut *terminal, READY)?;
    let pids = terminal.pids();
    let before = proc::cpu(&pids).ok();
    let begun = Instant::now();
    terminal.enter(b"\r")?;
    let received = until(&mut *terminal, OVER)?;
    let seconds = begun.elapsed().as_secs_f64();
    let cpu = proc::cpu(&pids).ok().zip(before);
    Ok(Outcome {
        written: flood::written(plan.kind, plan.megabytes),
        seconds,
        received,
        cpu: cpu.map(|(after, before)| after.saturating_sub(before).as_secs_f64()),
        resyncs: terminal.resyncs(),
    })
}
