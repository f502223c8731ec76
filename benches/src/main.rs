//! The benchmark suite: one command measures the same requests direct to a backend, behind nginx,
//! and through a Warren server and worker, in alternating rounds of one run.
//!
//! The program is several. Without a subcommand it is the suite, which starts everything else;
//! `benches backend` and `benches load` are the processes it starts from its own executable, so
//! that each one's processor time is accounted apart.
//!
//! - [`cli`]: the options
//! - [`suite`]: one run, from start to report; [`lab`]: what its scenarios use
//! - [`scenarios`]: what is measured: requests, startup, cancels, slow streams, rooms, the mesh, terminals
//! - [`targets`]: what it is measured on: direct, nginx, Warren
//! - [`backend`]: the mock model server; [`bare`]: relays without features
//! - [`echo`], [`copy`]: what the mesh is compared with; [`stock`]: a stock peer of it
//! - [`load`]: the load generator
//! - [`count`]: instructions and allocations of requests, which `cargo xtask budget` compares
//! - [`programs`]: what runs in terminals
//! - [`payload`]: request bodies and answers, known to both of these byte for byte
//! - [`replay`]: conversations, and model servers with caches of prompts
//! - [`rooms`]: rooms of a server, over HTTP
//! - [`child`], [`proc`]: processes, and what they use
//! - [`stats`], [`report`]: numbers, and how they are shown

mod backend;
mod bare;
mod child;
mod cli;
mod copy;
mod count;
mod echo;
mod http1;
mod lab;
mod load;
mod payload;
mod proc;
mod programs;
mod replay;
mod report;
mod rooms;
mod scenarios;
mod stats;
mod stock;
mod suite;
mod targets;

use std::process::ExitCode;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use cli::{Cli, Role};
use programs::{agent, flood, keys};

fn main() -> ExitCode {
    // Connections are file descriptors: ten thousand streams need the hard limit.
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    let cli = Cli::parse();
    if let Some(outcome) = alone(cli.role.as_ref()) {
        return code(outcome);
    }
    // One thread in every role: the load and the backend must leave the machine to the target.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(until_interrupted(play(cli)));
            // The reader of stdin is not waited for: the process at its other end waits for this one.
            runtime.shutdown_background();
            outcome
        }
        Err(e) => Err(e.into()),
    };
    code(outcome)
}

fn code(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            report::note(&format!("error: {e:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The roles that block; a signal ends them.
fn alone(role: Option<&Role>) -> Option<anyhow::Result<()>> {
    match role? {
        Role::Receive { to } => Some(copy::receive(to)),
        Role::Send { from, to } => Some(copy::send(from, *to)),
        Role::Give { from, model } => Some(stock::give(from, model)),
        Role::Fetch { peer, model, to } => Some(stock::fetch(*peer, model, to)),
        Role::Flood { kind, megabytes, pace } => Some(flood::run(*kind, *megabytes, *pace)),
        Role::Keys => Some(keys::run()),
        Role::Agent { arguments } => Some(agent::run(arguments)),
        Role::Backend
        | Role::BareFront
        | Role::BareBack { .. }
        | Role::Engine { .. }
        | Role::ReplayEngine { .. }
        | Role::Echo
        | Role::Load { .. }
        | Role::Count { .. } => None,
    }
}

async fn play(cli: Cli) -> anyhow::Result<()> {
    match cli.role {
        Some(Role::Backend) => backend::run().await,
        Some(Role::Load { plan }) => load::run(&plan).await,
        Some(Role::BareFront) => bare::front().await,
        Some(Role::BareBack { front, backend }) => bare::back(front, backend).await,
        Some(Role::Engine { model, port }) => backend::engine(&model, port).await,
        Some(Role::ReplayEngine { pace }) => replay::serve::run(pace).await,
        Some(Role::Echo) => echo::run().await,
        Some(Role::Count { warren, dir }) => count::run(&warren, &dir).await,
        // The others were played before.
        Some(_) => Ok(()),
        None => suite::run(&cli.options).await,
    }
}

/// Runs `work`; on a signal it drops it, and with it every child process.
async fn until_interrupted(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => anyhow::bail!("interrupted"),
        _ = terminate.recv() => anyhow::bail!("terminated"),
        _ = hangup.recv() => anyhow::bail!("the terminal is gone"),
    }
}
