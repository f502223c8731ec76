//! Real servers, workers and model servers, least-loaded and prefix affinity in turns. Each turn begins with cold caches. Time runs
//! faster; the figures are in the time of the load. The oracle is simulated, with the same conversations.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};

use super::{COLUMNS, CONVERSATIONS, LEAST_LOADED, ORACLE, goals, name, simulated, values};
use crate::{
    lab::Lab,
    load::{Failures, Plan, replay},
    replay::simulation::{Chooser, Outcome},
    report::{Line, Report, Section},
    targets::affinity,
};

/// Each turn takes two minutes.
const MOST_ROUNDS: u64 = 2;

/// How long a turn may take.
const LIMIT: Duration = Duration::from_secs(600);

const CHOOSERS: [Chooser; 2] = [Chooser::LeastLoaded, Chooser::PrefixAffinity];

/// The size and pace of the conversations.
#[derive(Clone, Copy, Debug)]
struct Load {
    conversations: usize,
    within: f64,
    pace: f64,
}

/// Near saturation for least-loaded.
const WHOLE: Load = Load { conversations: CONVERSATIONS, within: 1_700.0, pace: 20.0 };
const QUICK: Load = Load { conversations: 50, within: 400.0, pace: 40.0 };

#[derive(Default)]
struct Sum {
    rounds: Vec<Vec<Option<f64>>>,
    failures: Failures,
}

pub(super) async fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    let Some(program) = lab.launcher.warren() else { return Ok(()) };
    let load = if lab.options.quick { QUICK } else { WHOLE };
    let seeds: Vec<u64> = (1..=u64::from(lab.options.rounds()).min(MOST_ROUNDS)).collect();
    let mut sums = CHOOSERS.map(|_| Sum::default());
    for (seed, at) in
        seeds.iter().flat_map(|seed| CHOOSERS.iter().enumerate().map(move |(at, _)| (*seed, at)))
    {
        sums[at].add(turn(lab, program, CHOOSERS[at], load, seed).await?);
    }
    let talks: Vec<_> = seeds.iter().map(|seed| load.plan(*seed).talk()).collect();
    let measured = CHOOSERS.into_iter().zip(sums).map(|(chooser, sum)| sum.line(name(chooser)));
    report.add(Section {
        name: "affinity/server".into(),
        title: format!(
            "{} conversations that begin within {} s, {} times as fast, through a server and four workers",
            load.conversations, load.within, load.pace
        ),
        columns: COLUMNS.to_vec(),
        lines: [simulated(&talks, Chooser::Oracle)?].into_iter().chain(measured).collect(),
        bases: &[ORACLE, LEAST_LOADED],
        goals: goals(),
    })
}

/// Plays all conversations once.
async fn turn(
    lab: &Lab,
    program: &Path,
    chooser: Chooser,
    load: Load,
    seed: u64,
) -> Result<(Outcome, Failures)> {
    let mut house = affinity::launch(lab, program, name(chooser), load.pace).await?;
    let plan = replay::Replay { addr: house.addr, ..load.plan(seed) };
    let said: replay::Outcome = lab.load(&Plan::Replay(plan), LIMIT).await?;
    house.check()?;
    ensure!(said.answered > 0, "nothing was answered: {:?}", said.failures);
    let counts = house.counts().await?;
    house.stop().await;
    Ok((Outcome { counts, first: said.first }, said.failures))
}

impl Load {
    fn plan(self, seed: u64) -> replay::Replay {
        let Self { conversations, within, pace } = self;
        let addr = ([127, 0, 0, 1], 0).into();
        replay::Replay { addr, seed, conversations, within, pace }
    }
}

impl Sum {
    fn add(&mut self, (outcome, failures): (Outcome, Failures)) {
        self.rounds.push(values(&outcome));
        self.failures.merge(&failures);
    }

    fn line(self, target: &'static str) -> Line {
        Line::of_rounds(target, self.rounds, 0, self.failures)
    }
}
