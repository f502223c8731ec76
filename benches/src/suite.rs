//! One run: everything is started, each scenario measured and shown, everything stopped.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde::{Serialize, de::DeserializeOwned};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    child::Process,
    cli::Options,
    load::Plan,
    proc,
    report::{self, Report},
    scenarios::Scenario,
    targets::Launcher,
};

/// How long the mock backend may take to listen.
const LISTENS: Duration = Duration::from_secs(20);

/// What every scenario uses.
pub(crate) struct Lab {
    /// What to measure, and how long.
    pub(crate) options: Options,
    /// Starts the targets.
    pub(crate) launcher: Launcher,
    /// Where the mock backend listens.
    pub(crate) backend: SocketAddr,
    program: PathBuf,
    dir: TempDir,
}

/// Runs the suite. A scenario that cannot be measured is told and the others go on; the run then
/// counts as failed.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let scenarios = Scenario::all(options);
    if options.list {
        return scenarios.iter().try_for_each(|scenario| report::show(&scenario.name()));
    }
    ensure!(!scenarios.is_empty(), "no scenario of that name; --list shows all");
    if cfg!(debug_assertions) {
        report::note("this is a debug build: its numbers mean little (cargo run --release)");
    }
    let dir = tempfile::Builder::new().prefix("benches-").tempdir()?;
    let program = std::env::current_exe()?;
    let mut backend = own(&program, &["backend"], "backend", &dir)?;
    let addr = backend.listening(LISTENS).await?;
    let launcher = Launcher::find(options, addr).await?;
    let lab = Lab { options: options.clone(), launcher, backend: addr, program, dir };
    let outcome = measure(&lab, &scenarios).await;
    backend.stop().await;
    outcome
}

impl Lab {
    /// Runs the load generator and returns its outcome.
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

    /// This program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts another of the suite's own processes.
    pub(crate) fn start(&self, arguments: &[&str], name: &str) -> Result<Process> {
        own(&self.program, arguments, name, &self.dir)
    }

    /// Starts the load generator.
    pub(crate) fn start_load(&self, plan: &Plan) -> Result<Process> {
        own(&self.program, &["load", &serde_json::to_string(plan)?], "load", &self.dir)
    }
}

/// The next outcome a load generator prints.
pub(crate) async fn outcome<T: DeserializeOwned>(
    process: &mut Process,
    limit: Duration,
) -> Result<T> {
    serde_json::from_str(&process.line(limit).await?).context("an odd outcome of the load")
}

async fn measure(lab: &Lab, scenarios: &[Scenario]) -> Result<()> {
    let mut report = Report::new(proc::machine());
    report::show(report.heading())?;
    let mut failed = 0;
    for group in scenarios.chunk_by(Scenario::same_targets) {
        let sections = Scenario::measure(group, lab, &mut report).await;
        if let Err(e) = sections {
            report::note(&format!("{}: {e:#}", group[0].name()));
            failed += 1;
        }
    }
    let goals = report.goals();
    if !goals.is_empty() {
        report::show(&goals)?;
    }
    write_json(&lab.options, &report)?;
    ensure!(failed == 0, "{failed} scenario(s) could not be measured");
    Ok(())
}

fn write_json(options: &Options, report: &impl Serialize) -> Result<()> {
    let Some(path) = &options.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text + "\n").with_context(|| format!("write {}", path.display()))
}

/// Starts one of the suite's own processes.
fn own(program: &PathBuf, arguments: &[&str], name: &str, dir: &TempDir) -> Result<Process> {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command, name, dir.path())
}
