//! Prompts to an agent that is warm and answers at once: what a daemon adds to the agent's own pipes.

use std::path::Path;

use anyhow::Result;

use super::{Part, WARREN, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Daemon, Plan,
        turns::{Outcome, Turns},
    },
    report::{Column, Line, Section},
    stats::Times,
};

const COLD: Column = Column::new("cold ms", 0);
const EVENT: Column = Column::new("event p50 ms", 3);
const EVENT99: Column = Column::new("event p99 ms", 3);
const TEXT: Column = Column::new("text p50 ms", 3);
const TEXT99: Column = Column::new("text p99 ms", 3);
const END: Column = Column::new("turn p50 ms", 3);

const PIPES: &str = "pipes";

/// The latest that a warm agent's first words may come, in milliseconds.
const MOST: f64 = 50.0;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let turns = if lab.options.quick { 20 } else { 200 };
    let (target, daemon) = launch(lab, program).await?;
    let mut lines = Vec::new();
    for (name, daemon) in [(PIPES, None), (WARREN, Some(daemon))] {
        lines.push(one(lab, name, daemon, turns).await?);
    }
    target.stop().await;
    let goal = |column: Column| column.at_most(WARREN, MOST);
    Ok(Section {
        name: Part::Agent.name().into(),
        title: format!(
            "{turns} prompts to a warm agent that answers at once: until its first event of any kind, \
             its first text, its end; cold is the first turn, with starting it"
        ),
        columns: vec![COLD, EVENT, EVENT99, TEXT, TEXT99, END],
        lines,
        bases: &[PIPES],
        goals: vec![goal(EVENT99), goal(TEXT99)],
    })
}

async fn one(lab: &Lab, name: &'static str, daemon: Option<Daemon>, turns: u32) -> Result<Line> {
    let outcome: Outcome = load(lab, Plan::Turns(Turns { daemon, turns })).await?;
    let millis = Times::millis;
    let values = vec![
        Some(outcome.cold * 1e3),
        millis(&outcome.event, 0.5),
        millis(&outcome.event, 0.99),
        millis(&outcome.text, 0.5),
        millis(&outcome.text, 0.99),
        millis(&outcome.end, 0.5),
    ];
    Ok(line(name, values))
}
