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
//! - `bill`: what the ledger has to say
//! - `account`: what became of all

mod account;
mod bill;
mod chaos;
mod faults;
mod house;
mod judge;
mod load;

use std::{sync::Arc, time::Duration};

use clap::Args;
use testkit::{
    Random,
    lab::{self, Outcome, settles},
};
use tokio::time::Instant;

use crate::fleet::{account::Report, bill::Bills, house::House, judge::WORKERS};

/// How long the house may take to be in order in the end.
const SETTLE: Duration = Duration::from_secs(60);

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
    settle(&house, &bills, &report).await;
    report.check(|counts| counts.too_few());
    let (seed, wrongs) = (settings.trial.seed, report.wrongs());
    let (took, counts) = (begun.elapsed().as_secs(), report.tally(|counts| counts.to_string()));
    report.outcome(format!("seed {seed}: {took} s; {counts}; {wrongs} wrong"))
}

/// All servers are healthy and have all workers, no slot is lost, and the ledger has every row.
async fn settle(house: &House, bills: &Bills, report: &Report) {
    let begun = Instant::now();
    settles(report, "a server's health", SETTLE, async || unhealthy(house).await).await;
    settles(report, "the workers", SETTLE, async || busy(house).await).await;
    settles(report, "a backend", SETTLE, async || asked(house)).await;
    settles(report, "the ledger", SETTLE, async || bills.missing(house).await).await;
    report.tally(|counts| counts.settled = begun.elapsed());
    bills.compare(house, report).await;
}

async fn unhealthy(house: &House) -> Option<String> {
    for (number, server) in house.servers.iter().enumerate() {
        let health = server.health().await.unwrap_or_default();
        if health["status"] != "ok" {
            return Some(format!("server {number}: {health}"));
        }
    }
    None
}

/// A server that lacks a worker, or a worker that has a request.
async fn busy(house: &House) -> Option<String> {
    for (number, server) in house.servers.iter().enumerate() {
        let workers = server.workers().await;
        if workers.len() != WORKERS {
            return Some(format!("server {number} has {} workers", workers.len()));
        }
        if let Some(busy) = workers.iter().find(|worker| worker["in_flight_count"] != 0) {
            return Some(format!("at server {number}: {busy}"));
        }
    }
    None
}

fn asked(house: &House) -> Option<String> {
    let busy = house.workers.iter().find(|worker| worker.backend.counts().in_flight() != 0)?;
    Some(format!("{:?}", busy.backend))
}
