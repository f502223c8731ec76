//! A worker with many models and memory for three of them, under mixed requests, while its model engines, the
//! worker itself and the server are killed. Every request is answered, or fails once with a reason; no
//! more engines run than there is memory for, and none is left in the end.
//!
//! `soaks engines --binary WARREN --engine PROGRAM [--model FILE] [--models 20] [--requests 1000] [--clients 16] [--seed 1]`
//!
//! PROGRAM takes the flags of llama.cpp's server. Each model is a copy of FILE; without it, a file that only a
//! fake engine takes. It ends with an account; the exit code is 1 when something was wrong.

mod chaos;
mod house;
mod load;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use testkit::{
    Random,
    lab::{self, Crew, Outcome, settles},
};

use crate::engines::{
    chaos::Kills,
    house::House,
    load::{Load, Report, Tally},
};

/// How many models there is memory for.
pub(crate) const ROOM: usize = 3;

/// How long engines may live after what ends them.
pub(crate) const GONE_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) trial: lab::Trial,
    /// The program that serves a model
    #[arg(long)]
    pub(crate) engine: PathBuf,
    /// The file that each model is a copy of
    #[arg(long)]
    pub(crate) model: Option<PathBuf>,
    #[arg(long, default_value_t = 20, value_parser = lab::at_least_one)]
    pub(crate) models: usize,
    #[arg(long, default_value_t = 1000)]
    pub(crate) requests: u64,
    #[arg(long, default_value_t = 16, value_parser = lab::at_least_one)]
    pub(crate) clients: usize,
    /// Seconds between two kills
    #[arg(long, default_value_t = 4)]
    pub(crate) kill_every: u64,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (mut random, report) = (Random::new(settings.trial.seed), Report::default());
    let house = Arc::new(House::start(&settings).await);
    let begun = Instant::now();
    let mut chaos = Crew::of("the killer");
    let kills = Kills::default();
    chaos.spawn(chaos::kill(
        Arc::clone(&house),
        kills.clone(),
        random.fork(),
        chaos.stop_token(),
        report.clone(),
    ));
    chaos.spawn(chaos::count(Arc::clone(&house), chaos.stop_token(), report.clone()));
    drive(&settings, &house, &mut random, &report).await;
    let seconds = begun.elapsed().as_secs_f64();
    chaos.stop(&report).await;
    house.stop(&report).await;
    let none = async || house.engines().first().map(|engine| format!("{engine} is left"));
    settles(&report, "in the end", GONE_WITHIN, none).await;
    report.outcome(account(&settings, &kills, seconds, &report))
}

fn account(settings: &Settings, kills: &Kills, seconds: f64, report: &Report) -> String {
    let (seed, models) = (settings.trial.seed, settings.models);
    let Tally { requests, answered, streams, failed, reasons, most, loads } =
        report.tally(|tally| tally.clone());
    let reasons = reasons.iter().map(|(reason, times)| format!("\n  {times:5} {reason}"));
    format!(
        "seed {seed}: {requests} requests for {models} models in {seconds:.1} s, memory for {ROOM}: {answered} answered \
         ({streams} of them streams), {failed} failed with a reason, {} wrong; {loads} engines were seen, at most {most} at \
         once; killed: {kills}{}",
        report.wrongs(),
        reasons.collect::<String>(),
    )
}

/// Sends all requests, from several clients at once.
async fn drive(settings: &Settings, house: &House, random: &mut Random, report: &Report) {
    let load = Arc::new(Load::new(settings.requests, house.address(), house.models()));
    let mut clients = Crew::of("a client");
    for _ in 0..settings.clients {
        clients.spawn(Arc::clone(&load).client(random.fork(), report.clone()));
    }
    clients.join(report).await;
}
