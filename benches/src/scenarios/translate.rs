//! The cost of translation: the same stream of a chat backend, asked for as it is and through the
//! other APIs. The server's processor time beyond what the untranslated stream takes, by chunk.

use std::time::Duration;

use anyhow::{Context, Result};

use super::requests::RATE;
use crate::{
    cli::Kind,
    lab::Lab,
    load::{
        Plan,
        closed::{Closed, LIMIT, Outcome},
    },
    payload::{Answer, Api},
    proc,
    report::{Column, Line, Report, Section},
    targets::Target,
};

/// Chunks of a stream: enough that the request hardly counts.
const CHUNKS: u32 = 4096;

const BODY: usize = 1024;

/// Time a load generator may take beside its round and its last request.
const MARGIN: Duration = Duration::from_secs(30);

/// The most that a translated chunk may cost, in microseconds.
const MOST: f64 = 20.0;

const APIS: [(&str, Api); 5] = [
    ("chat", Api::Chat),
    ("messages", Api::Messages),
    ("responses", Api::Responses),
    ("gemini", Api::Gemini),
    ("ollama", Api::Ollama),
];

const CHUNK_RATE: Column = Column::new("chunks/s", 0);
const SERVER: Column = Column::new("server µs/chunk", 2);
const ADDED: Column = Column::new("added µs/chunk", 2);

pub(crate) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    if lab.launcher.warren().is_none() {
        return Ok(());
    }
    let mut target = lab.launcher.launch(Kind::Warren, 1).await?;
    let mut sums: Vec<Sum> = APIS.iter().map(|_| Sum::default()).collect();
    for at in lab.turns(APIS.len()) {
        sums[at].add(one_round(APIS[at].1, lab, &mut target).await?);
    }
    target.stop().await;
    report.add(section(sums))
}

#[derive(Default)]
struct Sum {
    all: Outcome,
    cpu: Duration,
}

impl Sum {
    fn add(&mut self, (outcome, cpu): (Outcome, Duration)) {
        self.all.add(&outcome);
        self.cpu += cpu;
    }

    /// Microseconds of the server for each chunk.
    fn per_chunk(&self) -> Option<f64> {
        let chunks = self.all.all as f64 * f64::from(CHUNKS);
        (self.all.all > 0).then(|| self.cpu.as_secs_f64() * 1e6 / chunks)
    }

    fn line(self, target: &'static str, untranslated: Option<f64>) -> Line {
        let rate = self.all.rate();
        let per_chunk = self.per_chunk();
        let added = untranslated.zip(per_chunk).map(|(without, with)| with - without);
        let chunks = rate.map(|rate| rate * f64::from(CHUNKS));
        let values = vec![rate, chunks, per_chunk, added];
        let reconnects = self.all.reconnects;
        Line { reconnects, ..Line::new(target, values, self.all.failures) }
    }
}

async fn one_round(api: Api, lab: &Lab, target: &mut Target) -> Result<(Outcome, Duration)> {
    let seconds = lab.options.round_seconds();
    let answer = Answer::back_to_back(CHUNKS);
    let plan = Closed { api, ..Closed::new(target.addr, BODY, answer, seconds) };
    let server = target.parts.iter().find(|part| part.name == "server");
    let pids = server.context("no server is accounted")?.pids.clone();
    let before = proc::cpu(&pids)?;
    let limit = Duration::from_secs_f64(seconds) + LIMIT + MARGIN;
    let outcome = lab.load(&Plan::Closed(plan), limit).await?;
    target.check()?;
    Ok((outcome, proc::cpu(&pids)?.saturating_sub(before)))
}

fn section(sums: Vec<Sum>) -> Section {
    let untranslated = sums.first().and_then(Sum::per_chunk);
    let lines = APIS
        .iter()
        .zip(sums)
        .enumerate()
        .map(|(at, ((name, _), sum))| sum.line(name, untranslated.filter(|_| at > 0)));
    let goal = |line| ADDED.at_most(line, MOST);
    Section {
        name: "translate".into(),
        title: format!("streams of {CHUNKS} chunks of a chat backend, through five APIs"),
        columns: vec![RATE, CHUNK_RATE, SERVER, ADDED],
        lines: lines.collect(),
        bases: &["chat"],
        goals: ["messages", "responses", "gemini", "ollama"].map(goal).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_what_comes_on_top() {
        let sum = |millis| Sum {
            all: Outcome { all: 10, measured: 10, seconds: 1.0, ..Outcome::default() },
            cpu: Duration::from_millis(millis),
        };
        let section = section(vec![sum(41), sum(82), sum(123), sum(164), sum(82)]);
        let added = |at: usize| section.lines[at].values[3];
        assert_eq!(added(0), None);
        assert!((added(1).unwrap() - 1.0).abs() < 0.01);
        assert!((added(2).unwrap() - 2.0).abs() < 0.01);
        assert!((added(3).unwrap() - 3.0).abs() < 0.01);
    }
}
