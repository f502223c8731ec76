//! Do clients see one answer when model servers and workers are lost in the middle of it? Streams in four APIs, of
//! which each says at temperature 0 what it would have said undisturbed, while their model servers are killed, their workers
//! are killed, and their workers are drained with no time to end.
//!
//! `soaks resume --binary WARREN [--with PROGRAM --model FILE] [--kills 1000] [--workers 3] [--clients 6] [--tokens 400]
//! [--slots N] [--peace MS] [--prompts FILE] [--seed 1] [--minutes M]`
//!
//! PROGRAM takes the flags of llama.cpp's server; without it, a stand-in goes on as llama.cpp does. A text that differs
//! must be what the model says to its beginning, from each seam on: it is asked again. It ends with an account, which tells
//! the first of these texts; the exit code is 1 when a text was wrong, or a client saw an error.
//!
//! - `house`: the server and its nodes; `node`: a worker with its model server, and how it is lost
//! - `api`: requests in the four APIs, and the text of their streams
//! - `load`: the clients; `judge`: what they got

mod api;
mod house;
mod judge;
mod load;
mod node;

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

use crate::resume::{
    house::House,
    load::{Load, Report},
};

#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    pub(crate) trial: lab::Trial,
    /// The program that serves the model
    #[arg(long, requires = "model")]
    pub(crate) with: Option<PathBuf>,
    /// The file of its model
    #[arg(long)]
    pub(crate) model: Option<PathBuf>,
    #[arg(long, default_value_t = 1000)]
    pub(crate) kills: u64,
    #[arg(long, default_value_t = 3, value_parser = lab::at_least_one)]
    pub(crate) workers: usize,
    #[arg(long, default_value_t = 6, value_parser = lab::at_least_one)]
    pub(crate) clients: usize,
    /// The most tokens of an answer
    #[arg(long, default_value_t = 400)]
    pub(crate) tokens: u64,
    /// How many answers at once a model server is asked for [default: 4; of PROGRAM 1: several are computed together,
    /// and round otherwise then]
    #[arg(long)]
    pub(crate) slots: Option<u32>,
    /// The longest that a worker is left alone between two losses, in milliseconds
    #[arg(long, default_value_t = 1500)]
    pub(crate) peace: u64,
    /// A file with a prompt on each line, instead of its own ones
    #[arg(long)]
    pub(crate) prompts: Option<PathBuf>,
    /// How long at most, in minutes, however many kills there were
    #[arg(long = "minutes", value_parser = lab::minutes)]
    pub(crate) time: Option<Duration>,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (mut random, report) = (Random::new(settings.trial.seed), Report::default());
    let house = Arc::new(House::start(&settings).await);
    let load = Arc::new(Load::prepare(&settings, &house).await);
    let begun = Instant::now();
    let mut clients = Crew::of("a client");
    for _ in 0..settings.clients {
        let client = Arc::clone(&load).client(random.fork(), clients.stop_token(), report.clone());
        clients.spawn(client);
    }
    let mut killers = Crew::of("a killer");
    for node in 0..settings.workers {
        killers.spawn(Arc::clone(&house).kill(node, random.fork(), begun, report.clone()));
    }
    killers.join(&report).await;
    clients.stop(&report).await;
    let seconds = begun.elapsed().as_secs_f64();
    judge::judge(&load, &house, &report).await;
    house.settle(&report).await;
    let account = account(&settings, seconds, &report);
    report.outcome(account)
}

fn account(settings: &Settings, seconds: f64, report: &Report) -> String {
    let tally = report.tally(|tally| tally.clone());
    let (seed, kinds) = (settings.trial.seed, tally.kinds());
    let kinds: Vec<String> = kinds.iter().map(|(kind, times)| format!("{times} {kind}")).collect();
    let share = 100.0 * tally.equal as f64 / tally.resumed.max(1) as f64;
    let (median, late) = (tally.pause(0.5), tally.pause(0.99));
    let differences: String = tally.differences.iter().map(|line| format!("\n{line}")).collect();
    format!(
        "seed {seed}: {} losses in {seconds:.0} s ({}); {} streams, of which {} went on at another worker, with {} seams \
         ({}): {} equal ({share:.1}%), {} differing from a seam on, {} wrong, {} errors; {} undisturbed; pause at a \
         seam: median {median} ms, 99% {late} ms{differences}",
        tally.kills,
        kinds.join(", "),
        tally.streams,
        tally.resumed,
        tally.pauses.len(),
        tally.places(),
        tally.equal,
        tally.differing,
        tally.wrong,
        tally.errors,
        tally.streams - tally.resumed - tally.errors,
    )
}
