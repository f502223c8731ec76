//! A server's workspace: terminals that print, agents that take turns, clients that come and go, fall
//! behind and are cut, sessions that are killed, and the server, too. Nothing that was printed may be
//! lost or come twice, nothing may be forgotten, and nothing may be left in the end.
//!
//! `workspace --binary PATH [--agents PATH] [--minutes 2] [--cuts 1000] [--terminals 12] [--clients 24]
//! [--seed 1]`
//!
//! `--agents` is the program of the fake agents; without it there are none. It ends with one line of
//! account; the exit code is 1 when something was wrong.
//!
//! - `place`: the server, and ways to it; `sessions`: what should run in it
//! - `numbers`: what terminals print, and whether it comes whole
//! - `cuts`: one session over a connection that is cut again and again
//! - `viewers`: clients that look; `talks`: clients that ask agents; `churn`: sessions that come and go
//! - `restart`: the server killed or stopped, and what it knows then
//! - `settle`: what is left at the end
//! - `account`: what became of all

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal, whose failures are its results"
)]

mod account;
mod churn;
mod cuts;
mod numbers;
mod place;
mod restart;
mod sessions;
mod settings;
mod settle;
mod talks;
mod viewers;

use std::{process::ExitCode, sync::Arc, time::Duration};

use testkit::Random;
use tokio::{task::JoinSet, time::Instant};

use crate::{account::Report, place::Place, settings::Settings};

/// After so long the server is killed, or stopped, and started again.
const EPOCH: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> ExitCode {
    let settings = match Settings::parse(std::env::args().skip(1)) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let report = Report::default();
    let line = run(&settings, &report).await;
    println!("{line}");
    let wrong = report.wrongs();
    for wrong in &wrong {
        eprintln!("wrong: {wrong}");
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(settings: &Settings, report: &Report) -> String {
    let mut random = Random::new(settings.seed);
    let place = Arc::new(Place::start(settings, &mut random).await);
    let begun = Instant::now();
    cuts::run(&place, settings.cuts, &mut random, report).await;
    let end = Instant::now() + settings.time;
    let mut agents = talks::begin(&place, report).await;
    while Instant::now() < end {
        let until = end.min(Instant::now() + EPOCH);
        epoch(settings, &place, &agents, until, &mut random, report).await;
        restart::restart(&place, &agents, &mut random, report).await;
        talks::remember(&place, &mut agents, report).await;
    }
    let mib = settle::settle(&place, report).await;
    report.check_that_it_counts(settings);
    report.line(settings.seed, begun.elapsed(), mib)
}

/// Everything at once, for a while.
async fn epoch(
    settings: &Settings,
    place: &Arc<Place>,
    agents: &[talks::Agent],
    until: Instant,
    random: &mut Random,
    report: &Report,
) {
    churn::fill(place, settings.terminals, random, report).await;
    let mut tasks = JoinSet::new();
    let own = || (Arc::clone(place), report.clone());
    let (there, reports) = own();
    tasks.spawn(churn::churn(there, settings.terminals, random.fork(), reports, until));
    for number in 0..settings.clients {
        let (there, reports) = own();
        let habits = viewers::Habits::of(number);
        tasks.spawn(viewers::view(there, habits, random.fork(), reports, until));
    }
    for agent in agents {
        let (there, reports) = own();
        tasks.spawn(talks::talk(there, agent.clone(), random.fork(), reports, until));
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            report.wrong(format!("a client: {error}"));
        }
    }
}
