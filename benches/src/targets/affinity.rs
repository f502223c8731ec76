//! A server, and four workers with a model server of the replay each.

use std::{net::SocketAddr, path::Path};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{eventually, warren};
use crate::{
    child::Process,
    http1,
    lab::Lab,
    replay::{SLOTS, WORKERS, engine::Counts},
};

const SECRET: &str = "the-secret-of-these-workers";

/// They end when it is dropped.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) addr: SocketAddr,
    engines: Vec<SocketAddr>,
    processes: Vec<Process>,
    _dir: TempDir,
}

/// Starts all of it with this routing, and waits until all workers are there.
pub(crate) async fn launch(lab: &Lab, program: &Path, routing: &str, pace: f64) -> Result<House> {
    let dir = warren::directory()?;
    let mut command = warren::clean(program, dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--worker-secret", SECRET]);
    command.args(["--routing", routing, "--max-queue-len", "10000"]);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut server = Process::spawn(command, "warren-serve", dir.path())?;
    let addr = server.listening(warren::LISTENS).await?;
    let mut house = House { addr, engines: Vec::new(), processes: vec![server], _dir: dir };
    for number in 0..WORKERS {
        house.add(lab, program, number, pace).await?;
    }
    let all_there = async || workers(addr).await == Some(WORKERS);
    let there = eventually(warren::CONNECTS, all_there).await;
    ensure!(there, "the server lacks workers: {}", house.processes[0].last_words());
    Ok(house)
}

impl House {
    async fn add(&mut self, lab: &Lab, program: &Path, number: usize, pace: f64) -> Result<()> {
        let name = format!("model-{number}");
        let mut engine = lab.process(&["replay-engine", "--pace", &pace.to_string()], &name)?;
        let at = engine.listening(warren::LISTENS).await?;
        let dir = self._dir.path().join(&name);
        std::fs::create_dir(&dir)?;
        let slots = SLOTS.to_string();
        let worker = warren::lend_slots(program, &dir, (self.addr, at), SECRET, &slots)?;
        self.engines.push(at);
        self.processes.extend([engine, worker]);
        Ok(())
    }

    /// The work of each model server so far.
    pub(crate) async fn counts(&self) -> Result<Vec<Counts>> {
        let mut all = Vec::new();
        for engine in &self.engines {
            let told = http1::get(*engine, "/replay/counts", warren::ANSWERS).await?;
            all.push(serde_json::from_slice(&told).context("odd counts")?);
        }
        Ok(all)
    }

    /// An error when one of its processes has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    pub(crate) async fn stop(mut self) {
        while let Some(process) = self.processes.pop() {
            process.stop().await;
        }
    }
}

/// How many workers the server has, as its health says.
async fn workers(addr: SocketAddr) -> Option<usize> {
    let told = http1::get(addr, "/health", warren::ANSWERS).await.ok()?;
    let health: serde_json::Value = serde_json::from_slice(&told).ok()?;
    usize::try_from(health["workers_connected"].as_u64()?).ok()
}
