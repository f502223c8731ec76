//! `warren doctor`: checks this machine's Warren, and says what to do.
//!
//! Each check is a function from facts to a finding, without I/O; `facts` gathers the facts.
//!
//! - `finding`: what a check found
//! - `settings`: the configuration, and its certificate
//! - `data`: the data directory
//! - `database`: the PostgreSQL that several servers share; `nats`: the NATS server over which they act as one
//! - `network`: the port, the server, its addresses, proxies, mDNS
//! - `machine`: limits, clock, the service
//! - `backends`: the model servers; `engines`: those that this machine runs itself

mod backends;
mod data;
mod database;
mod engines;
mod facts;
mod finding;
mod machine;
mod nats;
mod network;
mod settings;

use clap::Args;
use daemon::ConfigFile;

use self::finding::{Finding, State};
use super::{run_client, say, say_json, target::RunningServer, words::count};
use crate::exit;

/// Check configuration, data, database, NATS, port, server, clock, limits and model servers, and say what to do
#[derive(Args)]
#[command(
    after_help = "A fault keeps Warren from working; a note may be as you want it. The exit code is 1 if there is a \
fault.\n\nExamples:\n  warren doctor\n  warren doctor --json\n  warren doctor --server https://box.lan:9178"
)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Doctor {
    /// Runs the checks. A configuration that cannot be read is a finding, and not an error.
    pub(crate) fn run(
        self,
        file: anyhow::Result<ConfigFile>,
        cli: &clap::Command,
    ) -> anyhow::Result<()> {
        let findings =
            run_client(async { Ok(findings(&facts::gather(&self.server, file, cli).await)) })?;
        let faults = findings.iter().filter(|finding| finding.state == State::Fault).count();
        if self.json {
            say_json(&serde_json::json!({"checks": findings, "faults": faults}))?;
        } else {
            say(&readable(&findings))?;
        }
        exit::as_ended(Some(i32::from(faults > 0)))
    }
}

fn findings(facts: &facts::Facts) -> Vec<Finding> {
    let mut findings = vec![settings::configuration(&facts.configuration)];
    findings.extend(facts.certificate.as_ref().map(|it| settings::certificate(it, facts.now)));
    findings.extend([data::directory(&facts.data), data::space(&facts.data)]);
    findings.extend(database::all(facts.database.as_ref()));
    findings.extend(facts.nats.as_ref().map(nats::server));
    findings.extend([
        network::port(&facts.port, &facts.server),
        network::server(&facts.server, facts.data.holder),
        network::reach(&facts.reach),
        machine::service(&facts.service),
        machine::clock(&facts.clocks),
        machine::limits(&facts.limits),
    ]);
    findings.extend(backends::all(&facts.backends));
    findings.extend(engines::all(&facts.engines));
    findings.push(network::proxies(&facts.proxies));
    findings.push(network::mdns(&facts.mdns));
    findings
}

fn readable(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::readable).collect();
    let counted = |state| findings.iter().filter(|finding| finding.state == state).count() as u64;
    let faults = count(counted(State::Fault), "fault");
    let summary = format!("{faults}, {}", count(counted(State::Note), "note"));
    format!("{}\n\n{summary}", lines.join("\n"))
}
