//! A server with rooms whose participants join, leave and die all the time, clients of which some
//! hang up, and watchers of which some are slow. Every request must be answered, or fail by the
//! rules; nobody may get what is not theirs; and nothing may be left when all have gone.
//!
//! `rooms --binary PATH [--minutes 1] [--rooms 3] [--participants 50] [--clients 64] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong.
//!
//! - `script`: which answer belongs to which prompt
//! - `place`: a room, and who should be in it
//! - `churn`, `answers`: its participants, stock ones; `lenders`: those of our own
//! - `load`, `messages`: its clients
//! - `watch`, `frames`: its watchers
//! - `settle`: what is left at the end
//! - `calm`: whether all is well then
//! - `rules`: how long the server lets a request wait
//! - `account`: what became of all

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal, whose failures are its results"
)]

mod account;
mod answers;
mod calm;
mod churn;
mod frames;
mod http;
mod lenders;
mod load;
mod messages;
mod place;
mod rules;
mod script;
mod settings;
mod settle;
mod watch;

use std::{process::ExitCode, sync::Arc, time::Instant};

use testkit::{Random, Serve};
use tokio::task::JoinSet;

use crate::{
    account::{Account, Report},
    churn::Churn,
    lenders::Lenders,
    place::Place,
    settings::Settings,
    watch::Watchers,
};

/// Clients of the spec's messages, beside the others.
const MESSAGE_CLIENTS: usize = 12;

/// One of this many participants is a process of its own.
const LENDERS: usize = 8;

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Settings::parse(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let account = run(&settings).await;
    println!("{account}");
    for wrong in &account.wrong {
        eprintln!("wrong: {wrong}");
    }
    if account.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(settings: &Settings) -> Account {
    let (mut random, report) = (Random::new(settings.seed), Report::new(settings));
    let daemon = rules::keep_to(Serve::new(&settings.binary)).start().await;
    let mut places = Vec::new();
    for number in 0..settings.rooms {
        places.push(Arc::new(Place::make(&daemon, number).await));
    }
    let watchers = Watchers::start(&places, &mut random, &report);
    let lenders = settings.participants / LENDERS;
    let churn = Churn::start(&places, settings.participants - lenders, &mut random, &report);
    let lenders = Lenders::start(&settings.binary, &places, lenders, &mut random, &report).await;
    let begun = Instant::now();
    drive(settings, &places, &mut random, &report).await;
    let seconds = begun.elapsed().as_secs_f64();
    churn.stop(&report).await;
    lenders.stop(&report).await;
    settle::settle(&daemon, &places, &report).await;
    calm::serve(&places, &report).await;
    watchers.stop(&report).await;
    let resident_mib = settle::memory(&daemon, &report);
    let mut account = report.account();
    (account.seconds, account.resident_mib) = (seconds, resident_mib);
    account.check_that_it_counts(settings.clients, MESSAGE_CLIENTS);
    account
}

/// Lets all clients ask until the time is over, and their last requests have ended.
async fn drive(settings: &Settings, places: &[Arc<Place>], random: &mut Random, report: &Report) {
    let until = tokio::time::Instant::now() + settings.time;
    let mut clients = JoinSet::new();
    for _ in 0..settings.clients {
        clients.spawn(load::client(places.to_vec(), random.fork(), report.clone(), until));
    }
    for _ in 0..MESSAGE_CLIENTS {
        clients.spawn(messages::client(places.to_vec(), random.fork(), report.clone(), until));
    }
    while let Some(ended) = clients.join_next().await {
        if let Err(error) = ended {
            report.wrong(format!("a client: {error}"));
        }
    }
}
