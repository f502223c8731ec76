//! Does the ledger hold what the backend counted? Many clients ask through every API, some leave in
//! the middle of their stream; at the end both sums must be the same, to the token.
//!
//! `soaks ledger --binary PATH [--requests 10000] [--clients 64] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong.

mod backend;
mod load;

use std::{sync::Arc, time::Duration};

use clap::Args;
use serde_json::Value;
use testkit::{
    Daemon, MockBackend, Random, Serve, WorkerProcess, eventually,
    lab::{self, Crew, Outcome},
};

use crate::ledger::{
    backend::{LEFT, Tally, WHOLE},
    load::{Load, Report},
};

/// How long the last rows may take to be in the ledger.
const WRITTEN: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    #[arg(long, default_value_t = 10_000)]
    requests: u64,
    #[arg(long, default_value_t = 64, value_parser = lab::at_least_one)]
    clients: usize,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (tally, report) = (Arc::new(Tally::default()), Report::default());
    let backend = MockBackend::start(&[WHOLE, LEFT]).await;
    backend::script(&backend, &tally);
    let daemon = Serve::new(&settings.trial.binary).set("--max-queue-len", "1000").start().await;
    let lend = |name| {
        let args = ["--max-concurrent", "64"];
        WorkerProcess::start(&settings.trial.binary, &daemon.url(), &backend.url(), name, &args)
    };
    let _workers = [lend("one"), lend("two")];
    daemon.has_workers(2).await;
    drive(&settings, &daemon, &report).await;
    daemon.is_idle().await;
    let ledger = written(&daemon, settings.requests).await;
    tally.compare(&ledger).into_iter().for_each(|wrong| report.wrong(wrong));
    report.outcome(tally.account(settings.trial.seed, settings.requests, &ledger))
}

/// Sends all requests, from several clients at once.
async fn drive(settings: &Settings, daemon: &Daemon, report: &Report) {
    let mut random = Random::new(settings.trial.seed);
    let load = Arc::new(Load::new(settings.requests, daemon.client()));
    let mut clients = Crew::of("a client");
    for _ in 0..settings.clients {
        clients.spawn(Arc::clone(&load).client(random.fork(), report.clone()));
    }
    clients.join(report).await;
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
