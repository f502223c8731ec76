//! The dispatcher alone with model servers, in simulated time: the oracle, least-loaded and prefix affinity.

use anyhow::Result;

use super::{COLUMNS, CONVERSATIONS, LEAST_LOADED, ORACLE, goals, simulated};
use crate::{
    lab::Lab,
    replay::{simulation::Chooser, talk::Talk},
    report::{Report, Section},
};

/// Loads by the seconds within which the conversations begin: with least-loaded, about a quarter of the slots are taken, half, and three
/// quarters, which is near saturation.
const LOADS: [(&str, f64); 3] = [("light", 3_000.0), ("half", 2_000.0), ("full", 1_500.0)];

const CHOOSERS: [Chooser; 3] = [Chooser::Oracle, Chooser::LeastLoaded, Chooser::PrefixAffinity];

pub(super) fn measure(lab: &Lab, report: &mut Report) -> Result<()> {
    for (load, within) in LOADS {
        let seeds = 1..=u64::from(lab.options.rounds());
        let talks: Vec<_> = seeds.map(|seed| Talk::new(seed, CONVERSATIONS, within)).collect();
        let lines = CHOOSERS.into_iter().map(|chooser| simulated(&talks, chooser));
        report.add(Section {
            name: format!("affinity/model/{load}"),
            title: format!("{CONVERSATIONS} conversations that begin within {within} s, simulated"),
            columns: COLUMNS.to_vec(),
            lines: lines.collect::<Result<_>>()?,
            bases: &[ORACLE, LEAST_LOADED],
            goals: goals(),
        })?;
    }
    Ok(())
}
