//! Three servers that act as one, with six workers, NATS and PostgreSQL, under a steady load of requests of every kind, and
//! a fault every few seconds: each of them is killed, stopped, ended in order and started again, or cut off. Every request has
//! one end that the rules allow, and the ledger has exactly the tokens that its client was given.
//!
//! `soaks fleet --binary PATH [--minutes 1] [--rate 20] [--every 10] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong. With `SOAK_TRACE=1` every fault is printed
//! when it begins. It needs the programs of PostgreSQL and of NATS.
//!
//! - `house`: the servers, the workers, and what the servers share
//! - `faults`: what was out of order, and when; `chaos`: what puts it out of order
//! - `load`: the clients; `judge`: which end of a request is allowed
//! - `bill`: what the ledger has to say; `settle`: what must be true in the end
//! - `account`: what became of all

mod account;
mod bill;
mod chaos;
mod faults;
mod house;
mod judge;
mod load;
mod settle;

use std::{sync::Arc, time::Duration};

use clap::Args;
use testkit::{
    Random,
    lab::{self, Outcome},
};
use tokio::time::Instant;

use crate::fleet::{account::Report, bill::Bills, house::House};

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    /// Requests a second
    #[arg(long, default_value_t = 20, value_parser = lab::at_least_one)]
    rate: usize,
    /// Seconds from one fault to the next
    #[arg(long, default_value_t = 10, value_parser = lab::at_least_one)]
    every: usize,
    /// How long, in minutes
    #[arg(long = "minutes", default_value = "1", value_parser = lab::minutes)]
    time: Duration,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (report, bills) = (Report::default(), Arc::new(Bills::default()));
    let house = Arc::new(House::start(&settings.trial.binary).await);
    let mut random = Random::new(settings.trial.seed);
    let begun = Instant::now();
    let until = begun + settings.time;
    let every = Duration::from_secs(settings.every as u64);
    let chaos = chaos::run(Arc::clone(&house), random.fork(), report.clone(), every, until);
    let chaos = tokio::spawn(chaos);
    load::run(&house, &bills, random.fork(), &report, settings.rate, until).await;
    if let Err(error) = chaos.await {
        report.wrong(format!("the faults: {error}"));
    }
    settle::settle(&house, &bills, &report).await;
    report.check(|counts| counts.too_few());
    let (seed, wrongs) = (settings.trial.seed, report.wrongs());
    let (took, counts) = (begun.elapsed().as_secs(), report.tally(|counts| counts.to_string()));
    report.outcome(format!("seed {seed}: {took} s; {counts}; {wrongs} wrong"))
}
