//! The tally of a run.

use std::fmt;

use testkit::lab;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) made: u64,
    pub(crate) renamed: u64,
    pub(crate) deleted: u64,
    /// Requests whose end is not known: the member said so, or the connection ended.
    pub(crate) open: u64,
    pub(crate) lines: u64,
    /// Lines that had to be typed again.
    pub(crate) again: u64,
    /// Sessions of other members whose output was followed to the end.
    pub(crate) whole: u64,
    pub(crate) cuts: u64,
    pub(crate) holds: u64,
    pub(crate) stops: u64,
    pub(crate) kills: u64,
    /// In milliseconds: how long the members took to become equal.
    pub(crate) equal_after: u64,
}

pub(crate) type Report = lab::Report<Counts>;

impl Counts {
    /// A run in which hardly anything happened has tested nothing.
    pub(crate) fn too_few(&self) -> Option<String> {
        let least = [
            ("objects", self.made, 30),
            ("renames", self.renamed, 30),
            ("deletes", self.deleted, 10),
            ("lines", self.lines, 500),
            ("followed sessions", self.whole, 4),
            ("cuts", self.cuts, 2),
            ("held links", self.holds, 2),
            ("stops", self.stops, 1),
            ("kills", self.kills, 1),
        ];
        let (what, count, least) = least.into_iter().find(|(_, count, least)| count < least)?;
        Some(format!("only {count} {what}, of at least {least}: this tests nothing"))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made, renamed, deleted, open, lines, again, whole, .. } = self;
        let Self { cuts, holds, stops, kills, equal_after, .. } = self;
        write!(
            f,
            "{made} objects made, {renamed} renamed, {deleted} deleted, {open} requests open; "
        )?;
        write!(f, "{lines} lines, {again} typed again, {whole} sessions followed to the end; ")?;
        write!(f, "{cuts} cuts, {holds} held links, {stops} stops, {kills} kills; ")?;
        write!(f, "equal after {equal_after} ms")
    }
}
