//! One key after another, each until it comes back; maybe beside a terminal that floods.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::{
    pause,
    terminal::{Terminal, TerminalKind, open, until},
};
use crate::{
    programs::{READY, flood::Kind},
    stats::Times,
};

/// Between two keys. A daemon limits a client's messages per second.
const APART: Duration = Duration::from_millis(2);

/// Keys that are not counted at first.
const WARMUP: u32 = 50;

/// More megabytes than anybody waits for.
const ENDLESS: &str = "10000000";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Keys {
    pub(crate) way: TerminalKind,
    pub(crate) flood: bool,
    pub(crate) keys: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// From typing a key until it was read.
    pub(crate) times: Times,
    /// How many megabytes a second the other terminal gave meanwhile.
    pub(crate) flood: Option<f64>,
}

pub(super) fn run(plan: &Keys) -> Result<Outcome> {
    let mut terminal = open(&plan.way, &["keys"])?;
    until(&mut *terminal, READY)?;
    let flood = if plan.flood { Some(Flood::begin(&plan.way)?) } else { None };
    let mut times = Times::default();
    for number in 0..WARMUP + plan.keys {
        let took = echo(&mut *terminal, b'a' + (number % 26) as u8)?;
        if number >= WARMUP {
            times.add(took);
        }
        pause(APART);
    }
    let flood = flood.map(Flood::end).transpose()?;
    Ok(Outcome { times, flood })
}

fn echo(terminal: &mut dyn Terminal, key: u8) -> Result<Duration> {
    let (begun, mut came) = (Instant::now(), Vec::new());
    terminal.enter(&[key])?;
    while came.is_empty() {
        terminal.read(&mut |piece| came.extend_from_slice(piece))?;
    }
    let took = begun.elapsed();
    ensure!(came == [key], "{:?} came back instead of {:?}", came.escape_ascii(), char::from(key));
    Ok(took)
}

/// Another terminal that floods, and is read as fast as can be.
struct Flood {
    over: Arc<AtomicBool>,
    reading: JoinHandle<Result<f64>>,
}

impl Flood {
    fn begin(way: &TerminalKind) -> Result<Self> {
        let mut terminal = open(way, &["flood", Kind::Plain.name(), ENDLESS])?;
        until(&mut *terminal, READY)?;
        terminal.enter(b"\r")?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let reading = std::thread::spawn(move || {
            let (begun, mut bytes) = (Instant::now(), 0);
            while !seen.load(Ordering::Relaxed) {
                terminal.read(&mut |piece| bytes += piece.len())?;
            }
            Ok(bytes as f64 / 1e6 / begun.elapsed().as_secs_f64())
        });
        Ok(Self { over, reading })
    }

    fn end(self) -> Result<f64> {
        self.over.store(true, Ordering::Relaxed);
        self.reading.join().unwrap_or_else(|_| anyhow::bail!("the flood's reader is gone"))
    }
}
