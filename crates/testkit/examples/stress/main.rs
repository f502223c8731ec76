//! A server, workers that are killed and restarted all the time, and many clients of which some
//! hang up. Every request must be answered, or fail by the rules, and no slot may be lost.
//!
//! `stress --binary PATH [--requests 20000] [--workers 4] [--clients 64] [--seed 1] [--minutes M]`
//!
//! With `--minutes` it goes on for that time, whatever `--requests` says. It ends with one line of
//! account; the exit code is 1 when something was wrong.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal, whose failures are its results"
)]

mod account;
mod load;
mod settings;
mod workers;

use std::{process::ExitCode, sync::Arc, time::Instant};

use testkit::{Daemon, MockBackend, Random, Serve};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    account::Account,
    load::Load,
    settings::Settings,
    workers::{Killed, kill_and_restart},
};

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
    let mut random = Random::new(settings.seed);
    let backend = MockBackend::start(&["m"]).await;
    load::script(&backend, random.next());
    let daemon = Serve::new(&settings.binary).set("--max-queue-len", "1000").start().await;
    let stop = CancellationToken::new();
    let killing = kill_and_restart(settings, &daemon, &backend, random.fork(), stop.clone()).await;
    let begun = Instant::now();
    let mut account = drive(settings, &daemon, &mut random).await;
    account.seconds = begun.elapsed().as_secs_f64();
    stop.cancel();
    let Killed { times, workers } = killing.await.expect("the killer ends");
    account.kills = times;
    account.settle(&daemon, &backend, workers.len()).await;
    account
}

/// Sends all requests from several clients at once, and adds up their ends.
async fn drive(settings: &Settings, daemon: &Daemon, random: &mut Random) -> Account {
    let load = Arc::new(Load::new(settings, daemon.client()));
    let mut clients = JoinSet::new();
    for _ in 0..settings.clients {
        clients.spawn(Arc::clone(&load).client(random.fork()));
    }
    let mut account = Account::new(settings);
    while let Some(client) = clients.join_next().await {
        account.add(client.expect("a client ends"));
    }
    account
}
