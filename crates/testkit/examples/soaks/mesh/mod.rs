//! Ten machines in a mesh, on the local network and at a relay, that are killed, stopped, frozen and
//! started again all the time, while clients ask any of them for models that one, some or all of them
//! have, and others fetch a model. Every request must be answered whole and right, or fail by the rules;
//! none may go over two links; what was fetched must be the file, bit by bit; and nothing may be left in
//! the end.
//!
//! `soaks mesh --binary PATH [--minutes 2] [--clients 32] [--seed 1]`
//!
//! `soaks mesh --binary PATH --pull-gib N [--interrupts 3] [--seed 1]`: a large file instead, whose pull is
//! interrupted by killing the fetching machine and its sources.
//!
//! It ends with one line of account; the exit code is 1 when something was wrong.
//!
//! - `plan`: the links between machines, and how long one lets a request wait, and the models of each
//! - `script`: which answer belongs to which prompt
//! - `backend`: a machine's backend, and what it checks
//! - `machine`: one machine, from start to start; `relay`: where some meet
//! - `churn`: machines that come and go
//! - `load`, `judge`: the clients, and what they think of their answers
//! - `pull`: a model that is fetched; `long`: a large one
//! - `settle`: what is left at the end
//! - `calm`: whether all is well then
//! - `account`: what became of all

mod account;
mod backend;
mod calm;
mod churn;
mod file;
mod judge;
mod load;
mod long;
mod machine;
mod peers;
mod plan;
mod pull;
mod relay;
mod script;
mod settle;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use testkit::{
    Random,
    lab::{self, Crew, Outcome},
};

use crate::mesh::{account::Report, load::Load, peers::Mesh};

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    #[arg(long, default_value_t = 32, value_parser = lab::at_least_one)]
    clients: usize,
    /// How long, in minutes
    #[arg(long = "minutes", default_value = "2", value_parser = lab::minutes)]
    time: Duration,
    /// If given, only a file of this many GiB is pulled
    #[arg(long)]
    pull_gib: Option<f64>,
    /// How often that pull is interrupted
    #[arg(long, default_value_t = 3)]
    interrupts: u32,
    /// Where what the machines print is kept
    #[arg(long)]
    logs: Option<PathBuf>,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let report = Report::default();
    let account = match settings.pull_gib {
        Some(gib) => long::run(&settings, gib, &report).await,
        None => run(&settings, &report).await,
    };
    report.outcome(account)
}

async fn run(settings: &Settings, report: &Report) -> String {
    let mut random = Random::new(settings.trial.seed);
    let mesh = Arc::new(Mesh::start(settings, &mut random, report).await);
    let found = timed(calm::linked(&mesh, report)).await;
    let churn = churn::start(&mesh, &mut random, report);
    let pulls = pull::start(&mesh, &mut random, report);
    let driven = timed(drive(settings, &mesh, &mut random, report)).await;
    churn.stop(report).await;
    pulls.stop(report).await;
    let found_again = timed(calm::linked(&mesh, report)).await;
    calm::serve(&mesh, report).await;
    settle::settle(&mesh, report).await;
    let mib = settle::memory(&mesh, report).await;
    settle::end(&mesh, report).await;
    report.check(|tally| tally.too_few(settings.clients));
    let (seed, wrongs) = (settings.trial.seed, report.wrongs());
    let tally = report.tally(|tally| tally.to_string());
    format!(
        "seed {seed}: {driven:.1} s; {tally}; the largest occupies {mib} MiB; {wrongs} wrong; all had found each other \
         after {found:.1} s, and again after {found_again:.1} s"
    )
}

async fn timed(work: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    work.await;
    begun.elapsed().as_secs_f64()
}

/// Lets all clients ask until the time is over, and their last requests have ended.
async fn drive(settings: &Settings, mesh: &Arc<Mesh>, random: &mut Random, report: &Report) {
    let load = Arc::new(Load::new(Arc::clone(mesh), report.clone(), settings));
    let mut clients = Crew::of("a client");
    for _ in 0..settings.clients {
        clients.spawn(load::client(Arc::clone(&load), random.fork()));
    }
    clients.join(report).await;
}
