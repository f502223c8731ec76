//! How much of their prompts conversations find computed, by the policy that chooses the worker: 200 conversations over four
//! workers, whose model servers keep caches as llama.cpp does.
//!
//! - `model`: the dispatcher alone, in simulated time, at three loads
//! - `server`: servers and workers as processes, in real time, at the middle load

mod model;
mod server;

use anyhow::Result;

use crate::{
    lab::Lab,
    load::Failures,
    replay::{
        simulation::{Chooser, Outcome, play},
        talk::Talk,
    },
    report::{Column, Goal, Line, Report},
};

/// How many conversations there are.
const CONVERSATIONS: usize = 200;

const HITS: Column = Column::new("hits", 3);
const LOAD: Column = Column::new("load max/mean", 2);
const REQUESTS: Column = Column::new("requests max/mean", 2);
const FIRST: Column = Column::new("first token p50 ms", 0);
const FIRST_P99: Column = Column::new("p99", 0);
const COLUMNS: [Column; 5] = [HITS, LOAD, REQUESTS, FIRST, FIRST_P99];

const ORACLE: &str = "oracle";
const LEAST_LOADED: &str = "least-loaded";
const PREFIX_AFFINITY: &str = "prefix-affinity";

/// The least share of prompts found computed, beside the oracle's, and the most load of a worker over the mean.
const LEAST_HITS: f64 = 0.85;
const MOST_LOAD: f64 = 1.25;

/// A part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Model,
    Server,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Model, Self::Server];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Model => "affinity/model",
            Self::Server => "affinity/server",
        }
    }

    pub(crate) async fn measure(self, lab: &Lab, report: &mut Report) -> Result<()> {
        match self {
            Self::Model => model::measure(lab, report),
            Self::Server => server::measure(lab, report).await,
        }
    }
}

const fn name(chooser: Chooser) -> &'static str {
    match chooser {
        Chooser::Oracle => ORACLE,
        Chooser::LeastLoaded => LEAST_LOADED,
        Chooser::PrefixAffinity => PREFIX_AFFINITY,
    }
}

/// A line of what is simulated, of one talk for each round.
fn simulated(talks: &[Talk], chooser: Chooser) -> Result<Line> {
    let rounds = talks.iter().map(|talk| Ok(values(&play(talk, chooser)?)));
    let rounds = rounds.collect::<Result<_>>()?;
    Ok(Line::of_rounds(name(chooser), rounds, 0, Failures::default()))
}

fn values(outcome: &Outcome) -> Vec<Option<f64>> {
    let first = |share| outcome.first.millis(share);
    let balance = [outcome.hits(), outcome.load(), outcome.requests()].map(Some);
    balance.into_iter().chain([first(0.5), first(0.99)]).collect()
}

fn goals() -> Vec<Goal> {
    vec![
        HITS.at_least(PREFIX_AFFINITY, LEAST_HITS).beside(ORACLE),
        LOAD.at_most(PREFIX_AFFINITY, MOST_LOAD),
        REQUESTS.at_most(PREFIX_AFFINITY, MOST_LOAD),
        FIRST.at_most(PREFIX_AFFINITY, 1.0).beside(LEAST_LOADED),
    ]
}
