//! The things that every scenario uses: the options, the targets, and the suite's own processes.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{child::Process, cli::Options, load::Plan, targets::Launcher};

const LISTENS: Duration = Duration::from_secs(20);

pub(crate) struct Lab {
    pub(crate) options: Options,
    pub(crate) launcher: Launcher,
    pub(crate) backend: SocketAddr,
    program: PathBuf,
    dir: TempDir,
}

impl Lab {
    /// Starts the mock backend, which is returned too, and looks for the programs of the targets.
    pub(crate) async fn start(options: &Options) -> Result<(Self, Process)> {
        let dir = tempfile::Builder::new().prefix("benches-").tempdir()?;
        let program = std::env::current_exe()?;
        let mut process = own(&program, &["backend"], "backend", &dir)?;
        let backend = process.listening(LISTENS).await?;
        let launcher = Launcher::find(options, backend).await?;
        Ok((Self { options: options.clone(), launcher, backend, program, dir }, process))
    }

    /// The order in which this many lines take turns, in all rounds. Each round begins with another line, so that a drift of the
    /// machine hits all of them alike.
    pub(crate) fn turns(&self, lines: usize) -> impl Iterator<Item = usize> + use<> {
        let rounds = 0..self.options.rounds() as usize;
        rounds.flat_map(move |round| (0..lines).map(move |turn| (turn + round) % lines))
    }

    pub(crate) async fn load<T: DeserializeOwned>(
        &self,
        plan: &Plan,
        limit: Duration,
    ) -> Result<T> {
        let mut process = self.start_load(plan)?;
        let outcome = outcome(&mut process, limit).await;
        process.stop().await;
        outcome
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn process(&self, arguments: &[&str], name: &str) -> Result<Process> {
        own(&self.program, arguments, name, &self.dir)
    }

    pub(crate) fn start_load(&self, plan: &Plan) -> Result<Process> {
        own(&self.program, &["load", &serde_json::to_string(plan)?], "load", &self.dir)
    }
}

pub(crate) async fn outcome<T: DeserializeOwned>(
    process: &mut Process,
    limit: Duration,
) -> Result<T> {
    serde_json::from_str(&process.line(limit).await?).context("an odd outcome of the load")
}

fn own(program: &PathBuf, arguments: &[&str], name: &str, dir: &TempDir) -> Result<Process> {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command, name, dir.path())
}
