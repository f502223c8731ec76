//! The load generator: one thread, a process of its own, told what to do by a [`Plan`].
//!
//! - [`closed`]: a fixed number of connections, each with one request after another
//! - [`slow`]: many streams held open
//! - [`cancel`]: clients that hang up in the middle of a stream
//! - [`replay`]: conversations, each with one turn after another
//! - [`watch`]: watchers of rooms
//! - [`mesh`]: messages and nodes at mesh relays
//! - [`scale`]: many workers, and many requests that wait for them
//! - [`workspace`]: terminals and agents
//! - [`failures`]: what went wrong in any of them

pub(crate) mod cancel;
pub(crate) mod closed;
mod failures;
pub(crate) mod mesh;
pub(crate) mod replay;
pub(crate) mod scale;
pub(crate) mod slow;
pub(crate) mod watch;
pub(crate) mod workspace;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::child;

pub(crate) use failures::Failures;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    Closed(closed::Closed),
    Slow(slow::Slow),
    Cancel(cancel::Cancel),
    Replay(replay::Replay),
    Watch(watch::Watch),
    Frames(mesh::frames::Frames),
    Nodes(mesh::nodes::Nodes),
    Workspace(workspace::Plan),
    ScaleWorkers(scale::workers::Workers),
    ScaleClients(scale::clients::Clients),
}

/// Follows a plan given as JSON and prints its outcome as a line of JSON. Ends early when stdin
/// does.
pub(crate) async fn run(plan: &str) -> Result<()> {
    match serde_json::from_str(plan).context("an odd plan")? {
        Plan::Closed(plan) => told(closed::run(&plan)).await,
        Plan::Cancel(plan) => told(cancel::run(&plan)).await,
        Plan::Replay(plan) => told(replay::run(&plan)).await,
        Plan::Slow(plan) => {
            let held = slow::open(&plan).await?;
            say(&held.opened)?;
            child::abandoned().await;
            say(&held.close().await)
        }
        Plan::Frames(plan) => told(mesh::frames::run(&plan)).await,
        Plan::Nodes(plan) => {
            let mut held = mesh::nodes::open(&plan).await?;
            say(&held.quiet().await)?;
            child::told_to_go_on().await?;
            held.again().await?;
            say(&held.quiet().await)?;
            child::told_to_go_on().await?;
            held.come_and_go().await?;
            say(&held.quiet().await)?;
            child::abandoned().await;
            Ok(())
        }
        Plan::Workspace(plan) => workspace::run(plan).await,
        Plan::ScaleWorkers(plan) => {
            let joined = scale::workers::join(&plan).await?;
            say(&plan.workers)?;
            child::told_to_go_on().await?;
            joined.answer();
            child::abandoned().await;
            Ok(())
        }
        Plan::ScaleClients(plan) => told(scale::clients::run(&plan)).await,
        Plan::Watch(plan) => {
            let mut held = watch::open(&plan).await?;
            say(&held.opened)?;
            child::told_to_go_on().await?;
            say(&held.tell().await?)?;
            child::abandoned().await;
            Ok(())
        }
    }
}

async fn told<T: Serialize>(work: impl Future<Output = Result<T>>) -> Result<()> {
    tokio::select! {
        outcome = work => say(&outcome?),
        () = child::abandoned() => Ok(()),
    }
}

fn say(outcome: &impl Serialize) -> Result<()> {
    child::say(&serde_json::to_string(outcome)?)
}
