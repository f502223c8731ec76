//! A whole server: many workers that hold their jobs back, all queues full, and what its owner asks for then;
//! and how fast it gives the jobs to the workers once these answer.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{KEYS, MODELS, SLOTS, fleet::Fleet};
use crate::{
    http1::Link,
    lab::{self, Lab},
    load::{
        Plan,
        scale::{
            clients::{Answered, Clients},
            workers::Workers,
        },
    },
    proc,
    report::{Column, Goal, Line, Report, Section},
    stats::Times,
    targets::warren::{self, Keyed},
};

/// Jobs of each model that wait, if each gets its share of the slots: some less than its queue holds.
const WAITING: usize = 95;

/// How often each question is asked.
const ASKED: usize = 20;

/// How long an answer to the owner may take, in milliseconds.
const MOST: f64 = 50.0;

const JOINING: Duration = Duration::from_secs(120);
const ENDING: Duration = Duration::from_secs(300);
const ANSWER: Duration = Duration::from_secs(60);

const JOINED: Column = Column::new("workers joined in s", 2);
const WAIT: Column = Column::new("waiting", 0);
const MODELS_MS: Column = Column::new("/v1/models ms", 1);
const WORKERS_MS: Column = Column::new("/admin/workers ms", 1);
const METRICS_MS: Column = Column::new("/metrics ms", 1);
const HEALTH_MS: Column = Column::new("/health ms", 1);
const MEMORY: Column = Column::new("server MiB", 0);
const DRAINED: Column = Column::new("jobs/s", 0);
const CPU: Column = Column::new("server µs/job", 0);

const COLUMNS: [Column; 9] =
    [JOINED, WAIT, MODELS_MS, WORKERS_MS, METRICS_MS, HEALTH_MS, MEMORY, DRAINED, CPU];

/// The requested paths, in the order of the columns.
const PATHS: [&str; 4] = ["/v1/models", "/admin/workers", "/metrics", "/health"];

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let fleets = if lab.options.quick { &Fleet::ALL[..2] } else { &Fleet::ALL[..4] };
    let keys = if lab.options.quick { KEYS / 10 } else { KEYS };
    let mut lines = Vec::new();
    for fleet in fleets {
        lines.push(one(*fleet, keys, lab, program).await?);
    }
    report.add(Section {
        name: "scale/server".into(),
        title: format!("a server with {keys} keys, {MODELS} models, and all queues full"),
        columns: COLUMNS.to_vec(),
        lines,
        bases: const { &[Fleet::ALL[0].name] },
        goals: fleets.iter().flat_map(|fleet| goals(*fleet)).collect(),
    })
}

fn goals(fleet: Fleet) -> [Goal; 4] {
    [MODELS_MS, WORKERS_MS, METRICS_MS, HEALTH_MS].map(|column| column.at_most(fleet.name, MOST))
}

async fn one(fleet: Fleet, keys: usize, lab: &Lab, program: &Path) -> Result<Line> {
    let Keyed { mut target, secret, admin, dir } = warren::launch_keyed(program).await?;
    let keys_file = dir.join("keys");
    let first = make_keys(&target.addr, &admin, keys, &keys_file).await?;
    let begun = Instant::now();
    let plan = Workers {
        addr: target.addr,
        secret,
        workers: fleet.workers,
        each: fleet.each,
        models: MODELS,
        step: fleet.step(),
        slots: SLOTS,
    };
    let mut workers = lab.start_load(&Plan::ScaleWorkers(plan))?;
    let _: u64 = lab::outcome(&mut workers, JOINING).await?;
    until(&target.addr, &admin, |now| now.active_workers == fleet.workers).await?;
    let joined = begun.elapsed();
    let slots = fleet.workers as usize * SLOTS as usize;
    let requests = slots + WAITING * MODELS;
    let plan = Clients { addr: target.addr, requests, models: MODELS, keys: keys_file };
    let mut clients = lab.start_load(&Plan::ScaleClients(plan))?;
    // Workers that came first may have been given jobs of one model before others: its queue is shorter.
    let all = requests as u64 * 99 / 100;
    let now = until(&target.addr, &admin, |now| now.in_flight + now.waiting() >= all).await?;
    let mut answers = Vec::new();
    for path in PATHS {
        let key = if path == "/v1/models" { &first } else { &admin };
        answers.push(asked(&target.addr, path, key).await?.millis(0.9));
    }
    let (memory, before) = (target.resident("server"), proc::cpu(&target.pids())?);
    workers.go_on().await?;
    let told: Answered = lab::outcome(&mut clients, ENDING).await?;
    let cpu = proc::cpu(&target.pids())?.saturating_sub(before);
    target.check()?;
    clients.stop().await;
    workers.stop().await;
    target.stop().await;
    let mut values = vec![Some(joined.as_secs_f64()), Some(now.waiting() as f64)];
    values.extend(answers);
    values.push(memory.map(|bytes| bytes as f64 / f64::from(1 << 20)));
    values.push(Some(told.answered as f64 / told.seconds));
    values.push(Some(cpu.as_secs_f64() * 1e6 / told.answered as f64));
    Ok(Line::new(fleet.name, values, told.failures))
}

/// Makes `count` keys, and writes them to the file, one a line. Returns the first.
async fn make_keys(
    addr: &std::net::SocketAddr,
    admin: &str,
    count: usize,
    file: &Path,
) -> Result<String> {
    #[derive(Deserialize)]
    struct Made {
        key: String,
    }
    let mut link = Link::open(*addr).await?;
    let mut keys = Vec::with_capacity(count);
    for number in 0..count {
        let limits = json!({"rpm": 1_000_000, "tpm": 1_000_000_000_u64});
        let body = json!({"name": format!("client {number}"), "limits": limits}).to_string();
        let answer = link.ask(Method::POST, "/admin/keys", admin, Bytes::from(body)).await?;
        keys.push(serde_json::from_slice::<Made>(&answer).context("an odd key")?.key);
    }
    std::fs::write(file, keys.join("\n"))?;
    keys.into_iter().next().context("no key")
}

#[derive(Deserialize)]
struct Stats {
    queue_depth: std::collections::BTreeMap<String, u64>,
    active_workers: u64,
    in_flight: u64,
}

impl Stats {
    fn waiting(&self) -> u64 {
        self.queue_depth.values().sum()
    }
}

/// Looks at the server until it is as it should be.
async fn until(
    addr: &std::net::SocketAddr,
    admin: &str,
    so: impl Fn(&Stats) -> bool,
) -> Result<Stats> {
    let mut link = Link::open(*addr).await?;
    let begun = Instant::now();
    loop {
        let answer = link.ask(Method::GET, "/admin/stats", admin, Bytes::new()).await?;
        let stats: Stats = serde_json::from_slice(&answer).context("odd stats")?;
        if so(&stats) {
            return Ok(stats);
        }
        let (waiting, workers) = (stats.waiting(), stats.active_workers);
        let there = format!("{waiting} jobs wait, {} run, {workers} workers", stats.in_flight);
        ensure!(begun.elapsed() < JOINING, "not in time: {there}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How long this takes, each time on the same connection.
async fn asked(addr: &std::net::SocketAddr, path: &str, key: &str) -> Result<Times> {
    let (mut link, mut times) = (Link::open(*addr).await?, Times::default());
    for _ in 0..ASKED {
        let begun = Instant::now();
        let answer = link.ask(Method::GET, path, key, Bytes::new());
        timeout(ANSWER, answer).await.with_context(|| format!("no answer of {path}"))??;
        times.add(begun.elapsed());
    }
    Ok(times)
}
