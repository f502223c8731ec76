//! A server, workers that are killed and restarted all the time, and many clients of which some
//! hang up. Every request must be answered, or fail by the rules, and no slot may be lost.
//!
//! `soaks stress --binary PATH [--requests 20000] [--workers 4] [--clients 64] [--seed 1] [--minutes M]`
//!
//! With `--minutes` it goes on for that time, whatever `--requests` says. It ends with one line of
//! account; the exit code is 1 when something was wrong.

mod load;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use testkit::{
    Daemon, MockBackend, Random, Serve, WorkerProcess,
    lab::{self, Crew, Outcome, not_zero},
};
use tokio::{
    task::JoinHandle,
    time::{interval, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::stress::load::{Load, Report, Tally};

/// How long the last slots may take to be free after the last request.
const SETTLE: Duration = Duration::from_secs(15);

const KILL_EVERY: Duration = Duration::from_secs(1);

const SLOTS: &str = "16";

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    #[arg(long, default_value_t = 4, value_parser = lab::at_least_one)]
    workers: usize,
    #[arg(long, default_value_t = 64, value_parser = lab::at_least_one)]
    clients: usize,
    /// How long, in minutes, whatever the number of requests
    #[arg(long = "minutes", value_parser = lab::minutes)]
    time: Option<Duration>,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (mut random, report) = (Random::new(settings.trial.seed), Report::default());
    let backend = MockBackend::start(&["m"]).await;
    load::script(&backend, random.next());
    let daemon = Serve::new(&settings.trial.binary).set("--max-queue-len", "1000").start().await;
    let stop = CancellationToken::new();
    let killing = kill_and_restart(&settings, &daemon, &backend, random.fork(), stop.clone()).await;
    let begun = Instant::now();
    drive(&settings, &daemon, &mut random, &report).await;
    let seconds = begun.elapsed().as_secs_f64();
    stop.cancel();
    let Kills { times, workers } = killing.await.expect("the killer ends");
    settle(&daemon, &backend, workers.len(), &report).await;
    let Tally { requests, answered, hung_up, ended_by_event, cut, exhausted } =
        report.tally(|tally| *tally);
    let (seed, wrongs, counts) = (settings.trial.seed, report.wrongs(), backend.counts());
    report.outcome(format!(
        "seed {seed}: {requests} requests in {seconds:.1} s, {times} workers killed: {answered} answered, {hung_up} hung \
         up, {ended_by_event} ended by an error event, {cut} cut, {exhausted} with their requeues exhausted, {wrongs} \
         wrong; the backend was asked {} times and saw {} aborts",
        counts.started, counts.aborted,
    ))
}

struct Kills {
    times: u64,
    workers: Vec<WorkerProcess>,
}

/// Starts the workers, then kills one every second and starts it again, until it is stopped.
async fn kill_and_restart(
    settings: &Settings,
    daemon: &Daemon,
    backend: &MockBackend,
    mut random: Random,
    stop: CancellationToken,
) -> JoinHandle<Kills> {
    let (binary, server, lent) = (settings.trial.binary.clone(), daemon.url(), backend.url());
    let start = move |number: usize| {
        let name = format!("worker-{number}");
        let args = ["--models", "m", "--max-concurrent", SLOTS];
        WorkerProcess::start(&binary, &server, &lent, &name, &args)
    };
    let mut workers: Vec<_> = (0..settings.workers).map(&start).collect();
    daemon.has_workers(workers.len()).await;
    tokio::spawn(async move {
        let mut times = 0;
        let mut tick = interval(KILL_EVERY);
        tick.tick().await;
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let victim = random.below(workers.len() as u64) as usize;
            workers[victim].kill9().await;
            workers[victim] = start(victim);
            times += 1;
        }
        Kills { times, workers }
    })
}

/// Sends all requests from several clients at once.
async fn drive(settings: &Settings, daemon: &Daemon, random: &mut Random, report: &Report) {
    let load = Arc::new(Load::new(settings, daemon.client()));
    let mut clients = Crew::of("a client");
    for _ in 0..settings.clients {
        clients.spawn(Arc::clone(&load).client(random.fork(), report.clone()));
    }
    clients.join(report).await;
}

/// Checks at the end that nothing is held any more: not by the server, not by the backend.
async fn settle(daemon: &Daemon, backend: &MockBackend, workers: usize, report: &Report) {
    let settled = async {
        daemon.has_workers(workers).await;
        daemon.is_idle().await;
        backend.reaches("no request at the backend", |counts| counts.in_flight() == 0).await;
    };
    if timeout(SETTLE, settled).await.is_err() {
        report.wrong(format!("slots are lost: {:?}, {:?}", daemon.workers().await, backend));
    }
    let in_flight = |line: &str| line.starts_with("warren_") && line.contains("in_flight");
    for line in not_zero(&daemon.metrics().await, in_flight) {
        report.wrong(format!("in /metrics after the end: {line}"));
    }
}
