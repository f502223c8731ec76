//! One run: everything is started, each scenario measured and shown, everything stopped.

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::{
    cli::Options,
    lab::Lab,
    proc,
    report::{self, Report},
    scenarios::Scenario,
};

/// Runs the suite. A scenario that cannot be measured is reported and the others go on; the run then
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
    let (lab, backend) = Lab::start(options).await?;
    let outcome = measure(&lab, &scenarios).await;
    backend.stop().await;
    outcome
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
