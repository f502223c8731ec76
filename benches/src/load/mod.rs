//! The load generator: one thread, a process of its own, told what to do by a [`Plan`].
//!
//! - [`closed`]: a fixed number of connections, each with one request after another
//! - [`slow`]: many streams held open
//! - [`cancel`]: clients that hang up in the middle of a stream
//! - [`watch`]: watchers of rooms
//! - [`mesh`]: messages and nodes at mesh relays
//! - [`workspace`]: terminals and agents

pub(crate) mod cancel;
pub(crate) mod closed;
pub(crate) mod mesh;
pub(crate) mod slow;
pub(crate) mod watch;
pub(crate) mod workspace;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::child;

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Plan {
    /// See [`closed`].
    Closed(closed::Closed),
    /// See [`slow`].
    Slow(slow::Slow),
    /// See [`cancel`].
    Cancel(cancel::Cancel),
    /// See [`watch`].
    Watch(watch::Watch),
    /// See [`mesh::frames`].
    Frames(mesh::frames::Frames),
    /// See [`mesh::nodes`].
    Nodes(mesh::nodes::Nodes),
    /// See [`workspace`].
    Workspace(workspace::Plan),
}

/// What went wrong, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failures(BTreeMap<String, u64>);

impl Failures {
    /// Kinds told apart; any further kind is counted as `other`.
    const KINDS: usize = 16;

    /// Counts one.
    pub(crate) fn add(&mut self, what: &str) {
        self.add_many(what, 1);
    }

    /// Counts several.
    pub(crate) fn add_many(&mut self, what: &str, count: u64) {
        if count == 0 {
            return;
        }
        let known = self.0.contains_key(what) || self.0.len() < Self::KINDS;
        let kind = if known { what } else { "other" };
        *self.0.entry(kind.to_owned()).or_default() += count;
    }

    /// Counts all of `others` too.
    pub(crate) fn merge(&mut self, others: &Self) {
        for (what, &count) in &others.0 {
            self.add_many(what, count);
        }
    }

    /// All together.
    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Kind and count of each.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(what, &count)| (what.as_str(), count))
    }
}

/// Follows a plan given as JSON and prints its outcome as a line of JSON. Ends early when stdin
/// does.
pub(crate) async fn run(plan: &str) -> Result<()> {
    match serde_json::from_str(plan).context("an odd plan")? {
        Plan::Closed(plan) => told(closed::run(&plan)).await,
        Plan::Cancel(plan) => told(cancel::run(&plan)).await,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_failures_are_bounded() {
        let mut failures = Failures::default();
        for i in 0..100 {
            failures.add(&format!("kind {i}"));
        }
        assert_eq!(failures.iter().count(), Failures::KINDS + 1);
        assert_eq!(failures.total(), 100);
    }
}
