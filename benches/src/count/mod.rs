//! Counts what requests cost a server and a worker in instructions and allocations. These do not depend on
//! what else the machine does, as times do.
//!
//! Both run under valgrind's callgrind. This process is their backend and their only client: it sends one request
//! after another, and its backend lets each chunk of a stream go when its client has the one before. So
//! each chunk is one read, one frame and one write, however slow the target is.
//!
//! - [`lockstep`]: both ends of the requests
//! - [`callgrind`]: the program under callgrind, and what that counted

mod callgrind;
mod lockstep;

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use crate::{
    child,
    targets::{
        Target,
        warren::{self, Accounting},
    },
};
use callgrind::{Callgrind, Cost};
use lockstep::Ends;

/// Requests of each kind that are not counted: they open connections and fill caches.
const WARMUP: u32 = 40;

const PLAIN: u32 = 200;

const STREAMS: u32 = 10;

/// The chunks of a short and a long stream. What the long ones cost more is that of their further chunks.
const CHUNKS: [u32; 2] = [8, 72];

/// How long the ledger may take to write its last rows.
const SETTLES: Duration = Duration::from_millis(300);

/// The cost of each part of the target, by the names of the part and of the work.
type Counts = BTreeMap<&'static str, BTreeMap<&'static str, Each>>;

/// The cost of one request or one chunk.
#[derive(Debug, Serialize)]
struct Each {
    /// Of the thread that serves the requests.
    instructions: f64,
    /// Calls of the allocator in that thread.
    allocations: f64,
    /// Instructions of all other threads. They depend on time: the ledger writes together what has come within 40 ms.
    elsewhere: f64,
}

/// Counts and prints the counts as a line of JSON. What callgrind wrote stays in `dir`.
pub(crate) async fn run(program: &Path, dir: &Path) -> Result<()> {
    let counts = count(program, dir).await?;
    child::say(&serde_json::to_string(&counts)?)
}

async fn count(program: &Path, dir: &Path) -> Result<Counts> {
    stay_on_two_cores()?;
    let callgrind = Callgrind::new(program, dir)?;
    let mut ends = Ends::start().await?;
    let mut target = warren::launch(callgrind.program(), ends.backend(), Accounting::Whole).await?;
    ends.ask(&target, WARMUP, None).await?;
    ends.ask(&target, WARMUP, Some(CHUNKS[0])).await?;
    phase(&callgrind, &target).await?;
    ends.ask(&target, PLAIN, None).await?;
    let plain = phase(&callgrind, &target).await?;
    ends.ask(&target, STREAMS, Some(CHUNKS[0])).await?;
    let short = phase(&callgrind, &target).await?;
    ends.ask(&target, STREAMS, Some(CHUNKS[1])).await?;
    let long = phase(&callgrind, &target).await?;
    target.check()?;
    target.stop().await;
    Ok(counts(&plain, &short, &long))
}

/// The cost of each part since the last time.
async fn phase(callgrind: &Callgrind, target: &Target) -> Result<BTreeMap<&'static str, Cost>> {
    tokio::time::sleep(SETTLES).await;
    let mut costs = BTreeMap::new();
    for part in &target.parts {
        let pid = *part.pids.first().context("a part without a process")?;
        costs.insert(part.name, callgrind.dump(pid).await?);
    }
    Ok(costs)
}

fn counts(
    plain: &BTreeMap<&'static str, Cost>,
    short: &BTreeMap<&'static str, Cost>,
    long: &BTreeMap<&'static str, Cost>,
) -> Counts {
    let further = STREAMS * (CHUNKS[1] - CHUNKS[0]);
    let parts = plain.iter().map(|(part, plain)| {
        let chunks = long[part].less(&short[part]);
        (*part, BTreeMap::from([("plain", plain.each(PLAIN)), ("chunk", chunks.each(further))]))
    });
    parts.collect()
}

impl Cost {
    fn less(&self, other: &Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(other.instructions),
            allocations: self.allocations.saturating_sub(other.allocations),
            elsewhere: self.elsewhere.saturating_sub(other.elsewhere),
        }
    }

    fn each(&self, times: u32) -> Each {
        let each = |all: u64| all as f64 / f64::from(times);
        Each {
            instructions: each(self.instructions),
            allocations: each(self.allocations),
            elsewhere: each(self.elsewhere),
        }
    }
}

/// A server has a thread for each two cores, and more of them spend time on each other. On two cores
/// every machine counts the same.
fn stay_on_two_cores() -> Result<()> {
    let all = sched_getaffinity(None)?;
    let mut two = CpuSet::new();
    (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).take(2).for_each(|cpu| two.set(cpu));
    Ok(sched_setaffinity(None, &two)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_costs_what_longer_streams_cost_more() {
        let cost = |instructions| {
            BTreeMap::from([("server", Cost { instructions, allocations: 0, elsewhere: 0 })])
        };
        let counts = counts(&cost(2_000_000), &cost(100_000), &cost(740_000));
        let each = |work| counts["server"][work].instructions;
        assert!((each("plain") - 10_000.0).abs() < 0.1);
        assert!((each("chunk") - 1_000.0).abs() < 0.1);
    }
}
