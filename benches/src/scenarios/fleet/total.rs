//! The requests of three servers, each with a worker, beside those of one server with one worker: the same number of clients
//! and the same two cores.

use std::{path::Path, time::Duration};

use anyhow::Result;

use crate::{
    lab::{self, Lab},
    load::{
        Failures, Plan,
        closed::{Closed, LIMIT, Outcome},
    },
    payload::Answer,
    report::{Column, Line, Report, Section},
    targets::{Target, fleet},
};

const ONE: &str = "one server";
const THREE: &str = "three servers";

/// The least rate of the three, as a share of that of the one.
const LEAST: f64 = 0.8;

/// Clients in all. Three servers get the same number each.
const CONNECTIONS: u32 = 30;

const BODY: usize = 1 << 10;

const RATE: Column = Column::new("req/s", 1);

/// Time a load generator may take beside its round.
const MARGIN: Duration = Duration::from_secs(30);

pub(super) async fn measure(
    lab: &Lab,
    programs: (&Path, &Path),
    report: &mut Report,
) -> Result<()> {
    let names = [("one", true), ("two", true), ("three", true)];
    let mut one = fleet::launch(programs, lab.backend, &[(ONE, true)]).await?;
    let mut three = fleet::launch(programs, lab.backend, &names).await?;
    let (mut rates, mut failures) = ([Vec::new(), Vec::new()], [const { Vec::new() }; 2]);
    for at in lab.turns(2) {
        let servers = if at == 0 { &mut one.servers } else { &mut three.servers };
        let (rate, failed) = round(lab, servers).await?;
        rates[at].push(vec![Some(rate)]);
        failures[at].push(failed);
    }
    one.stop().await;
    three.stop().await;
    let line = |at: usize, name| {
        let mut all = Failures::default();
        failures[at].iter().for_each(|failed| all.merge(failed));
        Line::of_rounds(name, rates[at].clone(), 0, all)
    };
    report.add(Section {
        name: "fleet/total".into(),
        title: format!("plain requests of {CONNECTIONS} clients at one server, and at three"),
        columns: vec![RATE],
        lines: vec![line(0, ONE), line(1, THREE)],
        bases: &[ONE],
        goals: vec![RATE.at_least(THREE, LEAST).beside(ONE)],
    })
}

/// All servers at once. Returns their requests a second together.
async fn round(lab: &Lab, servers: &mut [Target]) -> Result<(f64, Failures)> {
    let seconds = lab.options.round_seconds();
    let limit = Duration::from_secs_f64(seconds * 1.5) + LIMIT + MARGIN;
    let connections = CONNECTIONS / u32::try_from(servers.len())?;
    let mut loads = Vec::new();
    for server in &*servers {
        let answer = Answer::Plain { bytes: BODY };
        let closed = Closed::new(server.addr, BODY, answer, seconds);
        let plan = Closed { connections, warmup: seconds * 0.15, ..closed };
        loads.push(lab.start_load(&Plan::Closed(plan))?);
    }
    let (mut rate, mut failures) = (0.0, Failures::default());
    for load in &mut loads {
        let outcome: Outcome = lab::outcome(load, limit).await?;
        rate += outcome.rate().unwrap_or_default();
        failures.merge(&outcome.failures);
    }
    for load in loads {
        load.stop().await;
    }
    servers.iter_mut().try_for_each(Target::check)?;
    Ok((rate, failures))
}
