//! The load of terminals and agents: one client, or many, of a daemon; and the same of what it is
//! compared with.
//!
//! - [`flood`]: a program that writes as fast as it is read
//! - [`engine`]: the same text through a terminal's state machine alone
//! - [`keys`]: one key after another, each until it comes back
//! - [`crowd`]: many clients of one terminal, some of which never read
//! - [`members`]: objects of a cluster, until all its members have them
//! - [`idle`]: many terminals in which nothing happens
//! - [`resync`]: one screen again and again
//! - [`turns`]: prompts to an agent
//! - [`terminal`]: a terminal, however it is reached: [`bare`], [`tcp`], [`tmux`], [`ttyd`], or [`viewer`]
//! - [`client`]: a connection to a daemon; [`socket`]: any WebSocket; [`frames`]: its frames
//! - [`find`]: words in a stream
//! - [`daemon`]: what is known of a daemon, and how long anything is waited for

mod bare;
mod client;
pub(crate) mod crowd;
mod daemon;
pub(crate) mod engine;
mod find;
pub(crate) mod flood;
mod frames;
pub(crate) mod idle;
pub(crate) mod keys;
pub(crate) mod members;
pub(crate) mod resync;
mod socket;
mod tcp;
pub(crate) mod terminal;
mod tmux;
mod ttyd;
pub(crate) mod turns;
mod viewer;

pub(crate) use daemon::Daemon;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::child;
pub(super) use daemon::{LIMIT, pause};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    Flood(flood::Flood),
    Engine(engine::Engine),
    Keys(keys::Keys),
    Crowd(crowd::Crowd),
    Idle(idle::Idle),
    Resync(resync::Resync),
    Turns(turns::Turns),
    Fill(members::Fill),
    Sight(members::Sight),
    Arrivals(members::Arrivals),
}

/// Follows the plan and prints its outcome as a line of JSON. Ends early when stdin does.
pub(super) async fn run(plan: Plan) -> Result<()> {
    let outcome = match plan {
        Plan::Crowd(plan) => return super::told(crowd::run(plan)).await,
        Plan::Flood(plan) => apart(move || json(flood::run(&plan)?)),
        Plan::Engine(plan) => apart(move || json(engine::run(&plan)?)),
        Plan::Keys(plan) => apart(move || json(keys::run(&plan)?)),
        Plan::Idle(plan) => apart(move || json(idle::run(&plan)?)),
        Plan::Resync(plan) => apart(move || json(resync::run(&plan)?)),
        Plan::Turns(plan) => apart(move || json(turns::run(&plan)?)),
        Plan::Fill(plan) => apart(move || json(members::fill(&plan)?)),
        Plan::Sight(plan) => apart(move || json(members::sight(&plan)?)),
        Plan::Arrivals(plan) => apart(move || json(members::arrivals(&plan)?)),
    };
    tokio::select! {
        outcome = done(outcome) => child::say(&outcome?),
        () = child::abandoned() => Ok(()),
    }
}

fn json(outcome: impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(&outcome)?)
}

/// What blocks has a thread of its own, which ends with the process at the latest: what is read is
/// timed by who reads it, with no runtime between.
fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> oneshot::Receiver<Result<T>> {
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || tell.send(work()));
    told
}

async fn done<T>(told: oneshot::Receiver<Result<T>>) -> Result<T> {
    told.await.context("the load's own thread is gone")?
}
