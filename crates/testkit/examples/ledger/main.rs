//! Does the ledger hold what the backend counted? Many clients ask through every API, some leave in
//! the middle of their stream; at the end both sums must be the same, to the token.
//!
//! `ledger --binary PATH [--requests 10000] [--clients 64] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal, whose failures are its results"
)]

mod backend;
mod load;
mod settings;

use std::{process::ExitCode, sync::Arc, time::Duration};

use serde_json::Value;
use testkit::{Daemon, MockBackend, Random, Serve, WorkerProcess, eventually};
use tokio::task::JoinSet;

use crate::{
    backend::{LEFT, Tally, WHOLE},
    load::{Load, Wrong},
    settings::Settings,
};

/// How long the last rows may take to be in the ledger.
const WRITTEN: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Settings::parse(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let wrong = run(&settings).await;
    for wrong in &wrong {
        eprintln!("wrong: {wrong}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(settings: &Settings) -> Vec<Wrong> {
    let tally = Arc::new(Tally::default());
    let backend = MockBackend::start(&[WHOLE, LEFT]).await;
    backend::script(&backend, &tally);
    let daemon = Serve::new(&settings.binary).set("--max-queue-len", "1000").start().await;
    let lend = |name| {
        let args = ["--max-concurrent", "64"];
        WorkerProcess::start(&settings.binary, &daemon.url(), &backend.url(), name, &args)
    };
    let _workers = [lend("one"), lend("two")];
    daemon.has_workers(2).await;
    let mut wrong = drive(settings, &daemon).await;
    daemon.is_idle().await;
    let report = written(&daemon, settings.requests).await;
    println!("{}", tally.account(settings, &report));
    wrong.extend(tally.compare(&report));
    wrong
}

/// Sends all requests, from several clients at once.
async fn drive(settings: &Settings, daemon: &Daemon) -> Vec<Wrong> {
    let mut random = Random::new(settings.seed);
    let load = Arc::new(Load::new(settings.requests, daemon.client()));
    let mut clients = JoinSet::new();
    for _ in 0..settings.clients {
        clients.spawn(Arc::clone(&load).client(random.fork()));
    }
    let mut wrong = Vec::new();
    while let Some(client) = clients.join_next().await {
        wrong.extend(client.expect("a client ends"));
    }
    wrong
}

/// The ledger by models, once every request is in it.
async fn written(daemon: &Daemon, requests: u64) -> Value {
    let admin = daemon.admin();
    let ask = async || admin.get("/admin/usage?by=model").await.json();
    eventually("every request in the ledger", WRITTEN, async || {
        ask().await["totals"]["requests"].as_u64() >= Some(requests)
    })
    .await;
    ask().await
}
