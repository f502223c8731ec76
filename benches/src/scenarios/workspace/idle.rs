//! Terminals in which nothing happens: what each costs the daemon itself, its helper counted with it and
//! memory shared with others in parts; what runs in them is not counted.

use std::path::Path;

use anyhow::Result;

use super::{Part, WARREN, launch, line, load};
use crate::{
    lab::Lab,
    load::workspace::{
        Plan,
        idle::{Idle, Outcome},
    },
    report::{Column, Section, mib},
};

const BEFORE: Column = Column::new("empty MiB", 1);
const OPENED: Column = Column::new("kB/session", 1);
const SEEN: Column = Column::new("kB/session seen", 1);
const OPENING: Column = Column::new("open ms", 2);
const IDLE: Column = Column::new("idle cpu %", 1);

/// The most that a session may cost, in kilobytes.
const MOST: f64 = 150.0;

pub(super) async fn measure(lab: &Lab, program: &Path) -> Result<Section> {
    let sessions = if lab.options.quick { 100 } else { 1000 };
    let (target, daemon) = launch(lab, program).await?;
    let outcome: Outcome = load(lab, Plan::Idle(Idle { daemon, sessions })).await?;
    target.stop().await;
    Ok(section(sessions, &outcome))
}

fn section(sessions: u32, outcome: &Outcome) -> Section {
    let each = |bytes: u64| bytes.saturating_sub(outcome.before) as f64 / 1e3 / f64::from(sessions);
    let values = vec![
        Some(mib(outcome.before)),
        Some(each(outcome.opened)),
        Some(each(outcome.seen)),
        Some(outcome.opening * 1e3 / f64::from(sessions)),
        Some(outcome.idle_cpu * 100.0),
    ];
    let goal = |column: Column| column.at_most(WARREN, MOST);
    Section {
        name: Part::Idle.name().into(),
        title: format!(
            "{sessions} shells at their first prompt, which nobody has seen, and after a client looked \
             at each"
        ),
        columns: vec![BEFORE, OPENED, SEEN, OPENING, IDLE],
        lines: vec![line(WARREN, values)],
        bases: &[],
        goals: vec![goal(OPENED), goal(SEEN)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_costs_its_part_of_what_was_added() {
        let outcome = Outcome {
            before: 10 << 20,
            opened: (10 << 20) + 10_000_000,
            seen: (10 << 20) + 12_000_000,
            opening: 0.5,
            idle_cpu: 0.01,
        };
        let values = &section(100, &outcome).lines[0].values;
        assert_eq!(values[..], [10.0, 100.0, 120.0, 5.0, 1.0].map(Some));
    }
}
