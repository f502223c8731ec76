//! A server with rooms whose participants join, leave and die all the time, clients of which some
//! hang up, and watchers of which some are slow. Every request must be answered, or fail by the
//! rules; no client may get another's answer; and nothing may be left at the end.
//!
//! `soaks rooms --binary PATH [--minutes 1] [--rooms 3] [--participants 50] [--clients 64] [--seed 1]`
//!
//! It ends with one line of account; the exit code is 1 when something was wrong.
//!
//! - `room`: a room, and the participants that should be in it
//! - `answers`: which answer belongs to which prompt, and how it is given
//! - `churn`: its participants, stock ones; `lenders`: those of our own
//! - `load`, `messages`: its clients
//! - `watch`, `frames`: its watchers
//! - `settle`: what is left at the end
//! - `calm`: whether all is well then
//! - `account`: what became of all

mod account;
mod answers;
mod calm;
mod churn;
mod frames;
mod lenders;
mod load;
mod messages;
mod room;
mod settle;
mod watch;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use testkit::{
    Random, Serve,
    lab::{self, Crew, Outcome, Patience},
};

use crate::rooms::{account::Report, lenders::Lenders, load::Kind, room::Room};

/// Clients of the spec's messages, beside the others.
const MESSAGE_CLIENTS: usize = 12;

/// One of this many participants is a process of its own.
const LENDERS: usize = 8;

/// Requests that may wait in a queue: few, so that some are refused.
const QUEUE_LEN: &str = "12";

/// How long the server lets a request wait. A participant may take longer to begin an answer than a silent one takes to be
/// lost.
const PATIENCE: Patience = Patience {
    queue: Duration::from_secs(10),
    request: Duration::from_secs(40),
    idle: Duration::from_secs(40),
    requeues: 3,
};

/// A request that has not ended by then hangs. The last minute is for a busy machine.
const HANGS: Duration = PATIENCE.longest().saturating_add(Duration::from_secs(60));

#[derive(Debug, Args)]
pub(crate) struct Settings {
    #[command(flatten)]
    trial: lab::Trial,
    #[arg(long, default_value_t = 3, value_parser = lab::at_least_one)]
    rooms: usize,
    #[arg(long, default_value_t = 50, value_parser = lab::at_least_one)]
    participants: usize,
    #[arg(long, default_value_t = 64, value_parser = lab::at_least_one)]
    clients: usize,
    /// How long, in minutes
    #[arg(long = "minutes", default_value = "1", value_parser = lab::minutes)]
    time: Duration,
}

pub(crate) async fn soak(settings: Settings) -> Outcome {
    let (mut random, report) = (Random::new(settings.trial.seed), Report::default());
    let serve = Serve::new(&settings.trial.binary).set("--max-queue-len", QUEUE_LEN);
    let serve =
        PATIENCE.flags().into_iter().fold(serve, |serve, (flag, value)| serve.set(flag, &value));
    let daemon = serve.start().await;
    let mut rooms = Vec::new();
    for number in 0..settings.rooms {
        rooms.push(Arc::new(Room::make(&daemon, number).await));
    }
    let watchers = watch::start(&rooms, &mut random, &report);
    let lenders = settings.participants / LENDERS;
    let churn = churn::start(&rooms, settings.participants - lenders, &mut random, &report);
    let lenders =
        Lenders::start(&settings.trial.binary, &rooms, lenders, &mut random, &report).await;
    let begun = Instant::now();
    drive(&settings, &rooms, &mut random, &report).await;
    let seconds = begun.elapsed().as_secs_f64();
    churn.stop(&report).await;
    lenders.stop(&report).await;
    settle::settle(&daemon, &rooms, &report).await;
    calm::serve(&rooms, &report).await;
    watchers.stop(&report).await;
    let mib = settle::memory(&daemon, &report);
    let few = report.tally(|tally| tally.too_few(settings.clients, MESSAGE_CLIENTS));
    few.into_iter().for_each(|few| report.wrong(few));
    let (seed, wrongs) = (settings.trial.seed, report.wrongs());
    let tally = report.tally(|tally| tally.to_string());
    report.outcome(format!(
        "seed {seed}: {seconds:.1} s; {tally}; the server occupies {mib} MiB; {wrongs} wrong"
    ))
}

/// Lets all clients ask until the time is over, and their last requests have ended.
async fn drive(settings: &Settings, rooms: &[Arc<Room>], random: &mut Random, report: &Report) {
    let until = tokio::time::Instant::now() + settings.time;
    let mut clients = Crew::of("a client");
    for (kind, count) in [(Kind::Chat, settings.clients), (Kind::Message, MESSAGE_CLIENTS)] {
        for _ in 0..count {
            clients.spawn(load::client(kind, rooms.to_vec(), random.fork(), report.clone(), until));
        }
    }
    clients.join(report).await;
}
