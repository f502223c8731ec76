//! How many messages a relay passes on in a second, beside how many a bare echo gives back. They take turns.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::Result;

use super::{ECHO, MARGIN, Part, echo};
use crate::{
    lab::Lab,
    load::{
        Failures, Plan,
        mesh::frames::{Frames, Outcome},
    },
    proc,
    report::{Column, Line, Section},
    targets::mesh,
};

const RATE: Column = Column::new("frames/s", 0);
const P50: Column = Column::new("p50 ms", 3);
const CPU: Column = Column::new("cpu µs/frame", 2);

const RELAY: &str = "relay";

/// Bytes of each message: about those of a token of a stock node.
const SIZE: usize = 607;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let relay = mesh::relay(program).await?;
    let (bare, to_echo) = echo(lab, plan(lab, relay.addr)).await?;
    let to_relay = plan(lab, relay.addr);
    let mut sums = [Sum::default(), Sum::default()];
    for at in lab.turns(2) {
        let (plan, pid) = [(&to_echo, bare.pid()), (&to_relay, relay.pids()[0])][at];
        sums[at].add(lab, plan, pid).await?;
    }
    bare.stop().await;
    relay.stop().await;
    let lines = [ECHO, RELAY].into_iter().zip(sums).map(|(name, sum)| sum.line(name)).collect();
    Ok(Section {
        name: Part::Frames.name().into(),
        title: format!(
            "messages of {SIZE} bytes from 4 nodes to 4 others, 64 on their way for each"
        ),
        columns: vec![RATE, P50, CPU],
        lines,
        bases: &[ECHO],
        goals: vec![RATE.at_least(RELAY, 0.5).beside(ECHO)],
    })
}

fn plan(lab: &Lab, addr: SocketAddr) -> Frames {
    let seconds = lab.options.round_seconds();
    Frames { addr, relay: true, pairs: 4, window: 64, size: SIZE, warmup: seconds * 0.15, seconds }
}

#[derive(Default)]
struct Sum {
    all: Outcome,
    cpu: Duration,
}

impl Sum {
    async fn add(&mut self, lab: &Lab, plan: &Frames, pid: u32) -> Result<()> {
        let limit = Duration::from_secs_f64(plan.warmup + plan.seconds) + MARGIN;
        let before = proc::cpu(&[pid])?;
        let outcome: Outcome = lab.load(&Plan::Frames(plan.clone()), limit).await?;
        self.cpu += proc::cpu(&[pid])?.saturating_sub(before);
        self.all.arrived += outcome.arrived;
        self.all.seconds += outcome.seconds;
        self.all.times.merge(&outcome.times);
        Ok(())
    }

    fn line(self, target: &'static str) -> Line {
        let rate = self.all.arrived as f64 / self.all.seconds;
        let p50 = self.all.times.millis(0.5);
        // Its warm-up, which costs as well, is not counted: 1.15 of the time.
        let frames = self.all.arrived as f64 * 1.15;
        let cpu = (frames > 0.0).then(|| self.cpu.as_secs_f64() * 1e6 / frames);
        Line::new(target, vec![Some(rate), p50, cpu], Failures::default())
    }
}
