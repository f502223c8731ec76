//! A server's workspace: terminals that print, agents that take turns, clients that come and go, fall
//! behind and are cut, sessions that are killed, and the server, too. Nothing that was printed may be
//! lost or come twice, nothing may be forgotten, and nothing may be left in the end.
//!
//! `soaks workspace --binary PATH [--agents PATH] [--minutes 2] [--cuts 1000] [--terminals 12] [--clients 24]
//! [--seed 1]`
//!
//! `--agents` is the program of the fake agents; without it there are none. It ends with one line of
//! account; the exit code is 1 when something was wrong.
//!
//! - `server`: the server, and ways to it; `sessions`: what should run in it
//! - `numbers`: what terminals print, and whether it comes whole
//! - `cuts`: one session over a connection that is cut again and again
//! - `viewers`: clients that look; `talks`: clients that ask agents; `churn`: sessions that come and go
//! - `restart`: the server killed or stopped, and what it knows then
//! - `account`: what became of all

mod account;
mod churn;
mod cuts;
mod numbers;
mod restart;
mod server;
mod sessions;
mod talks;
mod viewers;

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use serde_json::json;
use testkit::{
    Random, eventually,
    lab::{self, Crew, Outcome},
    workspace::Mark,
};
use tokio::time::Instant;

use crate::workspace::{account::Report, server::Server};

/// How often the server is killed or stopped, and started again.
const EPOCH: Duration = Duration::from_secs(20);
/// The most memory of the server in the end, in MiB.
const MOST_MIB: u64 = 160;
/// Files and sockets that it may have open in the end.
const MOST_OPEN: usize = 80;
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    /// The program of the fake agents; without it there are none
    #[arg(long)]
    agents: Option<PathBuf>,
    #[arg(long, default_value_t = 1_000)]
    cuts: u64,
    #[arg(long, default_value_t = 12, value_parser = lab::at_least_one)]
    terminals: usize,
    #[arg(long, default_value_t = 24, value_parser = lab::at_least_one)]
    clients: usize,
    /// How long, in minutes
    #[arg(long = "minutes", default_value = "2", value_parser = lab::minutes)]
    time: Duration,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (mut random, report) = (Random::new(settings.trial.seed), Report::default());
    let server = Arc::new(Server::start(&settings, &mut random).await);
    let begun = Instant::now();
    cuts::run(&server, settings.cuts, &mut random, &report).await;
    let end = Instant::now() + settings.time;
    let mut agents = talks::begin(&server, &report).await;
    while Instant::now() < end {
        let until = end.min(Instant::now() + EPOCH);
        epoch(&settings, &server, &agents, until, &mut random, &report).await;
        restart::restart(&server, &agents, &mut random, &report).await;
        talks::remember(&server, &mut agents, &report).await;
    }
    let mib = settle(&server, &report).await;
    report.check(|counts| counts.too_few(&settings));
    let (seed, took, wrongs) =
        (settings.trial.seed, begun.elapsed().as_secs_f64(), report.wrongs());
    let counts = report.tally(|counts| counts.to_string());
    report.outcome(format!(
        "seed {seed}: {took:.1} s; {counts}; the server occupies {mib} MiB; {wrongs} wrong"
    ))
}

/// Runs all clients at once, for a while.
async fn epoch(
    settings: &Settings,
    server: &Arc<Server>,
    agents: &[talks::Agent],
    until: Instant,
    random: &mut Random,
    report: &Report,
) {
    churn::fill(server, settings.terminals, random, report).await;
    let mut tasks = Crew::of("a client");
    let own = || (Arc::clone(server), report.clone());
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
    tasks.join(report).await;
}

/// Ends all sessions, and checks that nothing is left. Returns the memory of the server, in MiB.
async fn settle(server: &Server, report: &Report) -> u64 {
    if let Err(wrong) = end(server).await {
        report.wrong(format!("at the end: {wrong}"));
    }
    let mut daemon = server.daemon.lock().await;
    let mib = daemon.resident_bytes() / 1024 / 1024;
    if mib > MOST_MIB {
        report.wrong(format!("the server occupies {mib} MiB in the end"));
    }
    let open = || fs::read_dir(format!("/proc/{}/fd", daemon.pid())).map_or(0, Iterator::count);
    eventually("few open files", DEADLINE, async || open() < MOST_OPEN).await;
    daemon.sigterm();
    let code = daemon.exit().await;
    if code != Some(0) {
        report.wrong(format!("the server ended with {code:?}"));
    }
    // Every process that was started there has its directory in its command line, or that of the fakes.
    Mark::of(&server.dir()).is_gone().await;
    mib
}

async fn end(server: &Server) -> Result<(), String> {
    for session in server.listed().await? {
        let kill = json!({"type": "kill_session", "session_id": session["id"]});
        server.ask(kill, "session_killed").await?;
    }
    match server.listed().await?.len() {
        0 => Ok(()),
        left => Err(format!("{left} sessions are left")),
    }
}
