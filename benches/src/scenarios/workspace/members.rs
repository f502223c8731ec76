//! Five members of a cluster with many objects: how fast a change is seen at all of them, also if they
//! are linked as a line only; how fast two halves become equal that were apart; and what it takes to
//! find out that two members are equal which have lost their link.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep};

use super::tools::{LIMIT, line, load};
use crate::{
    lab::{self, Lab},
    load::{
        self,
        workspace::{
            Daemon, Plan,
            members::{Arrivals, Fill, LISTENS, Outcome, Sight},
        },
    },
    report::{Column, Line, Section},
    stats::{Times, now},
    targets::{
        eventually,
        workspace::{Members, launch_members},
    },
};

const MEMBERS: usize = 5;
/// The members of the one half; the others are the other one.
const HALF: usize = 2;
/// How many objects each member makes while the halves are apart.
const APART: u32 = 20;
/// How long all may take to find each other, and a line to be one.
const CONNECTS: Duration = Duration::from_secs(60);
/// In this time digests have gone round, and nothing is left to be said.
const QUIET: Duration = Duration::from_secs(8);
/// The bytes of a new link are counted for this time, in which there is no second digest.
const COUNTED: Duration = Duration::from_millis(1500);

const P50: Column = Column::new("seen p50 ms", 1);
const P99: Column = Column::new("seen p99 ms", 1);
const LINKED: Column = Column::new("equal s", 2);
const HEALED: Column = Column::new("with redialling s", 2);
const BYTES: Column = Column::new("reconnect KiB", 2);

const MESH: &str = "all linked";
const CHAIN: &str = "a line";

/// Goals: milliseconds, seconds, seconds, KiB.
const SEEN: f64 = 50.0;
const EQUAL: f64 = 1.0;
const EQUAL_LINE: f64 = 5.0;
const RECONNECT: f64 = 8.0;

pub(super) async fn measure(lab: &Lab, program: &Path, name: &str) -> Result<Section> {
    let objects = if lab.options.quick { 500 } else { 10_000 };
    let changes = if lab.options.quick { 50 } else { 1000 };
    let members = launch_members(program, lab.program(), MEMBERS).await?;
    let run = Run { lab, members: &members };
    let are_linked = async || run.sight("link", 1).await.is_ok();
    ensure!(eventually(CONNECTS, are_linked).await, "the members are not linked");
    run.fill("fill", objects / MEMBERS as u32).await?;
    ensure!(eventually(CONNECTS, are_linked).await, "the members are not equal");
    let mut mesh = run.sum("mesh", changes, |_, _| false).await?;
    sleep(QUIET).await;
    mesh.bytes = Some(run.reconnect().await?);
    let is_far = |one: usize, other: usize| one.abs_diff(other) > 1;
    members.ways.cut(is_far);
    sleep(QUIET).await;
    let chain = run.sum("line", changes / 5, is_far).await?;
    members.stop().await;
    Ok(section(name, objects, &mesh, &chain))
}

struct Run<'a> {
    lab: &'a Lab,
    members: &'a Members,
}

/// The measurements of one shape of the cluster.
#[derive(Default)]
struct Sum {
    seen: Times,
    /// From the first answer over a healed way until all were equal, and from the healing, in seconds:
    /// the longest of all rounds.
    equal: [f64; 2],
    bytes: Option<u64>,
}

impl Run<'_> {
    fn daemons(&self) -> Vec<Daemon> {
        self.members.daemons.clone()
    }

    async fn fill(&self, name: &str, each: u32) -> Result<Outcome> {
        let (daemons, name) = (self.daemons(), name.to_owned());
        load(self.lab, Plan::Fill(Fill { daemons, name, each })).await
    }

    async fn sight(&self, name: &str, changes: u32) -> Result<Outcome> {
        let (daemons, name) = (self.daemons(), name.to_owned());
        load(self.lab, Plan::Sight(Sight { daemons, name, changes })).await
    }

    /// Measures with the ways cut for which `is_cut` says so.
    async fn sum(
        &self,
        name: &str,
        changes: u32,
        is_cut: impl Fn(usize, usize) -> bool,
    ) -> Result<Sum> {
        let mut sum = Sum { seen: self.sight(name, changes).await?.times, ..Sum::default() };
        for round in 0..self.lab.options.rounds() {
            let equal = self.part(&format!("{name} apart {round}"), &is_cut).await?;
            for (longest, new) in sum.equal.iter_mut().zip(equal) {
                *longest = longest.max(new);
            }
        }
        Ok(sum)
    }

    /// Parts the halves, changes both, and heals the ways between them.
    async fn part(&self, name: &str, is_cut: impl Fn(usize, usize) -> bool) -> Result<[f64; 2]> {
        let ways = &self.members.ways;
        let are_halves = |one: usize, other: usize| (one < HALF) != (other < HALF);
        ways.cut(|one, other| are_halves(one, other) || is_cut(one, other));
        self.fill(name, APART).await?;
        let mut waiting = self.lab.start_load(&load::Plan::Workspace(self.arrivals(name)))?;
        ensure!(waiting.line(LIMIT).await? == LISTENS, "the clients do not listen");
        let healed = now();
        ways.cut(&is_cut);
        let outcome: Outcome = lab::outcome(&mut waiting, LIMIT).await?;
        waiting.stop().await;
        let was_healed = |one, other| are_halves(one, other) && !is_cut(one, other);
        let linked = ways.answered(was_healed).context("equal without a link")?;
        let since = |begun: u64| outcome.last.saturating_sub(begun) as f64 / 1e6;
        Ok([since(linked), since(healed)])
    }

    fn arrivals(&self, name: &str) -> Plan {
        let lacks =
            |place: usize| (0..MEMBERS).filter(|it| (*it < HALF) != (place < HALF)).collect();
        let daemons = self.daemons().into_iter().enumerate();
        let daemons = daemons.map(|(place, daemon)| (daemon, lacks(place))).collect();
        Plan::Arrivals(Arrivals { daemons, name: name.to_owned(), each: APART })
    }

    /// The bytes between two members that have lost their link and nothing else.
    async fn reconnect(&self) -> Result<u64> {
        let ways = &self.members.ways;
        let are_they = |one, other| (one, other) == (0, 1);
        ways.cut(are_they);
        sleep(Duration::from_millis(100)).await;
        let before = ways.carried(0, 1);
        ways.cut(|_, _| false);
        let begun = Instant::now();
        while ways.answered(are_they).is_none() {
            ensure!(begun.elapsed() < CONNECTS, "the two members are not linked again");
            sleep(Duration::from_millis(5)).await;
        }
        sleep(COUNTED).await;
        Ok(ways.carried(0, 1) - before)
    }
}

impl Sum {
    fn line(&self, name: &'static str) -> Line {
        let [equal, healed] = self.equal.map(Some);
        let bytes = self.bytes.map(|bytes| bytes as f64 / 1024.0);
        line(name, vec![self.seen.millis(0.5), self.seen.millis(0.99), equal, healed, bytes])
    }
}

fn section(name: &str, objects: u32, mesh: &Sum, chain: &Sum) -> Section {
    Section {
        name: name.into(),
        title: format!(
            "five members with {objects} objects: a change, until clients of all have heard of it; two \
             halves with {APART} new objects of each member, from their first link until all are \
             equal, and from when they could link; and a new link between two equal ones"
        ),
        columns: vec![P50, P99, LINKED, HEALED, BYTES],
        lines: vec![mesh.line(MESH), chain.line(CHAIN)],
        bases: &[],
        goals: vec![
            P99.at_most(MESH, SEEN),
            LINKED.at_most(MESH, EQUAL),
            LINKED.at_most(CHAIN, EQUAL_LINE),
            BYTES.at_most(MESH, RECONNECT),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_the_cluster_is_a_line() {
        let mut mesh = Sum { equal: [0.5, 1.5], bytes: Some(4096), ..Sum::default() };
        mesh.seen.add(Duration::from_millis(20));
        let section = section("x", 500, &mesh, &Sum::default());
        let values = &section.lines[0].values;
        assert!((values[0].unwrap() - 20.0).abs() < 0.1, "{values:?}");
        assert_eq!(values[2..], [Some(0.5), Some(1.5), Some(4.0)]);
        assert_eq!(section.lines[1].values[..2], [None, None]);
    }
}
