//! A thousand workers at three servers, one of which is killed: how long until the other two have forgotten its workers.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use serde::{Deserialize, de::IgnoredAny};
use tokio::time::{Instant, sleep};

use crate::{
    child::Process,
    http1::Link,
    lab::{self, Lab},
    load::{Failures, Plan, scale::workers::Workers},
    report::{Column, Line, Report, Section},
    stats::Times,
    targets::{Target, fleet},
};

const LINE: &str = "1,000 workers";
const WORKERS: u64 = 1_000;
const SERVERS: u64 = 3;

/// How long they may take to forget, in milliseconds.
const MOST: f64 = 2_000.0;

const JOINING: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

const KNOWN: Column = Column::new("known to all after s", 2);
const FORGOTTEN: Column = Column::new("forgotten by all after ms", 0);
const WORST: Column = Column::new("at worst ms", 0);

pub(super) async fn measure(
    lab: &Lab,
    programs: (&Path, &Path),
    report: &mut Report,
) -> Result<()> {
    let (mut known, mut forgotten) = (Times::default(), Times::default());
    for _ in 0..lab.options.rounds() {
        let (joined, gone) = round(lab, programs).await?;
        known.add(joined);
        forgotten.add(gone);
    }
    let seconds = known.millis(0.5).map(|millis| millis / 1000.0);
    let values = vec![seconds, forgotten.millis(0.5), forgotten.millis(1.0)];
    report.add(Section {
        name: "fleet/death".into(),
        title: format!("{WORKERS} workers at {SERVERS} servers, one of which is killed"),
        columns: vec![KNOWN, FORGOTTEN, WORST],
        lines: vec![Line::new(LINE, values, Failures::default())],
        bases: &[],
        goals: vec![WORST.at_most(LINE, MOST)],
    })
}

/// How long it took until all servers knew all workers, and until two had forgotten those of the third.
async fn round(lab: &Lab, programs: (&Path, &Path)) -> Result<(Duration, Duration)> {
    let names = [("one", false), ("two", false), ("three", false)];
    let mut fleet = fleet::launch(programs, lab.backend, &names).await?;
    let mut crowds = Vec::new();
    for (number, server) in (0..).zip(&fleet.servers) {
        crowds.push(crowd(lab, server.addr, share(number)).await?);
    }
    let joined = Instant::now();
    until(&fleet.servers, WORKERS).await?;
    let joined = joined.elapsed();
    // Dropping it kills it.
    drop(fleet.servers.remove(0));
    let killed = Instant::now();
    until(&fleet.servers, WORKERS - share(0)).await?;
    let killed = killed.elapsed();
    for crowd in crowds {
        crowd.stop().await;
    }
    fleet.stop().await;
    Ok((joined, killed))
}

/// The workers of the server of this number.
const fn share(number: u64) -> u64 {
    (WORKERS + number) / SERVERS
}

async fn crowd(lab: &Lab, addr: SocketAddr, workers: u64) -> Result<Process> {
    let secret = fleet::secret().to_owned();
    let plan = Workers { addr, secret, workers, each: 20, models: 200, step: 1, slots: 4 };
    let mut crowd = lab.start_load(&Plan::ScaleWorkers(plan))?;
    let _: u64 = lab::outcome(&mut crowd, JOINING).await?;
    Ok(crowd)
}

/// Waits until each of the servers lists this number of workers.
async fn until(servers: &[Target], workers: u64) -> Result<()> {
    let begun = Instant::now();
    for server in servers {
        let mut link = Link::open(server.addr).await?;
        loop {
            let now = count(&mut link).await?;
            if now == workers {
                break;
            }
            let name = server.name;
            ensure!(begun.elapsed() < JOINING, "{name} knows {now} workers, not {workers}");
            sleep(LOOK).await;
        }
    }
    Ok(())
}

async fn count(link: &mut Link) -> Result<u64> {
    #[derive(Deserialize)]
    struct Told {
        workers: Vec<IgnoredAny>,
    }
    let answer = link.ask(Method::GET, "/admin/workers", fleet::ADMIN, Bytes::new()).await?;
    let told: Told = serde_json::from_slice(&answer).context("an odd list of workers")?;
    Ok(told.workers.len() as u64)
}
