//! The tally of a run.

use std::fmt;

use testkit::lab;

use crate::workspace::Settings;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Connections of clients that were cut in the first part.
    pub(crate) cuts: u64,
    /// Connections of clients that looked.
    pub(crate) connections: u64,
    /// Of these, such that went on where the one before was cut.
    pub(crate) resumed: u64,
    /// Snapshots after a lag, or after too long an absence.
    pub(crate) snapshots: u64,
    pub(crate) lines: u64,
    pub(crate) opened: u64,
    pub(crate) killed: u64,
    pub(crate) turns: u64,
    pub(crate) questions: u64,
    pub(crate) restarts: u64,
}

pub(crate) type Report = lab::Report<Counts>;

impl Counts {
    /// A run in which hardly anything happened has tested nothing.
    pub(crate) fn too_few(&self, settings: &Settings) -> Option<String> {
        let clients = settings.clients as u64;
        let least = [
            ("cuts", self.cuts, settings.cuts),
            ("connections", self.connections, 2 * clients),
            ("resumed connections", self.resumed, clients),
            ("snapshots", self.snapshots, clients),
            ("lines", self.lines, 1_000),
            ("killed sessions", self.killed, 2),
            ("turns", self.turns, if settings.agents.is_some() { 10 } else { 0 }),
            ("restarts", self.restarts, 1),
        ];
        let (what, count, least) = least.into_iter().find(|(_, count, least)| count < least)?;
        Some(format!("only {count} {what}, of at least {least}: this tests nothing"))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuts, connections, resumed, snapshots, lines, .. } = self;
        let Self { opened, killed, turns, questions, restarts, .. } = self;
        write!(f, "{cuts} cuts of one session; {connections} connections of clients, ")?;
        write!(f, "{resumed} of them resumed, {snapshots} snapshots, {lines} lines; ")?;
        write!(f, "{opened} terminals opened, {killed} killed; {turns} turns of agents, ")?;
        write!(f, "{questions} questions; {restarts} restarts")
    }
}
