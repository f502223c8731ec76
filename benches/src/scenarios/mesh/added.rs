//! The time that a peer adds to a request, compared with asking the peer's machine itself, beside the time of a
//! message to a bare WebSocket echo and back. All three take turns.

use std::{path::Path, time::Duration};

use anyhow::Result;

use super::{ECHO, MARGIN, Part, echo};
use crate::{
    lab::Lab,
    load::{
        Failures, Plan,
        closed::{self, Closed, LIMIT},
        mesh::frames::{self, Frames},
    },
    payload::Answer,
    report::{Column, Line, Section},
    stats::Times,
    targets::{
        Target,
        mesh::{self, OWN, PEER},
    },
};

const P50: Column = Column::new("p50 ms", 3);
const P99: Column = Column::new("p99 ms", 3);
const FIRST: Column = Column::new("ttfb p50 ms", 3);
const ADDED: Column = Column::new("added p50 ms", 3);

/// Bytes of a request's body, and of a message to the echo.
const BODY: usize = 1 << 10;

/// The most that is added, as a multiple of the echo's time.
const fn most(relay: bool) -> f64 {
    if relay { 8.0 } else { 4.0 }
}

pub(super) async fn measure(lab: &Lab, program: &Path, relay: bool) -> Result<Section> {
    let at = if relay { Some(mesh::relay(program).await?) } else { None };
    let addr = at.as_ref().map(|relay| relay.addr);
    let mut pair = mesh::pair(program, lab.backend, addr).await?;
    let (bare, to_echo) = echo(lab, ping(lab)).await?;
    let (mut own, mut peer, mut back) = (Sum::default(), Sum::default(), Times::default());
    for _ in 0..lab.options.rounds() {
        own.add(lab, &mut pair[0]).await?;
        peer.add(lab, &mut pair[1]).await?;
        let plan = Plan::Frames(to_echo.clone());
        let outcome: frames::Outcome = lab.load(&plan, limit(lab)).await?;
        back.merge(&outcome.times);
    }
    bare.stop().await;
    let [one, other] = pair;
    other.stop().await;
    one.stop().await;
    if let Some(relay) = at {
        relay.stop().await;
    }
    Ok(section(relay, own, peer, &back))
}

fn section(relay: bool, own: Sum, peer: Sum, back: &Times) -> Section {
    let p50 = back.millis(0.5);
    let base = vec![p50, back.millis(0.99), p50, p50];
    let added =
        own.0.latency.millis(0.5).zip(peer.0.latency.millis(0.5)).map(|(own, peer)| peer - own);
    let part = if relay { Part::Relay } else { Part::Lan };
    let place = if relay { "at a relay" } else { "on the LAN" };
    Section {
        name: part.name().into(),
        title: format!(
            "a request answered by a peer {place}, and by its own server; an echo of {BODY} bytes"
        ),
        columns: vec![P50, P99, FIRST, ADDED],
        lines: vec![
            Line::new(ECHO, base, Failures::default()),
            own.line(OWN, None),
            peer.line(PEER, added),
        ],
        bases: &[ECHO],
        goals: vec![ADDED.at_most(PEER, most(relay)).beside(ECHO)],
    }
}

fn limit(lab: &Lab) -> Duration {
    Duration::from_secs_f64(lab.options.round_seconds() * 2.0) + LIMIT + MARGIN
}

/// One message at a time. The address is filled in later.
fn ping(lab: &Lab) -> Frames {
    let addr = ([127, 0, 0, 1], 0).into();
    let seconds = lab.options.round_seconds();
    Frames { addr, relay: false, pairs: 1, window: 1, size: BODY, warmup: seconds * 0.15, seconds }
}

#[derive(Default)]
struct Sum(closed::Outcome);

impl Sum {
    async fn add(&mut self, lab: &Lab, target: &mut Target) -> Result<()> {
        let seconds = lab.options.round_seconds();
        let plan = Closed {
            rewritten: target.rewrites,
            warmup: seconds * 0.15,
            ..Closed::new(target.addr, BODY, Answer::back_to_back(1), seconds)
        };
        let outcome: closed::Outcome = lab.load(&Plan::Closed(plan), limit(lab)).await?;
        target.check()?;
        self.0.add(&outcome);
        Ok(())
    }

    fn line(self, target: &'static str, added: Option<f64>) -> Line {
        let (latency, first) = (&self.0.latency, &self.0.first_byte);
        let values = vec![latency.millis(0.5), latency.millis(0.99), first.millis(0.5), added];
        Line::new(target, values, self.0.failures)
    }
}
