//! Versions whose writer's clock is ahead.
//!
//! A version that is more than a minute ahead of the cluster's time is noted, stored and passed on,
//! but is not shown, and does not move this member's clock. If it were thrown away, the object
//! would be lost: the dot of the version is noted, so other members would take the object for
//! deleted.
//!
//! A member's own entry never waits. Only the member itself writes it, so its clock gives it no
//! advantage over other writers, and without the entry the other members would not know the
//! machine.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    entry::{Entry, Key, Kind, NodeId},
    notice::Notice,
    replica::Replica,
    table::Layer,
};

/// How far ahead a version may be without being held.
pub(crate) const AHEAD: Duration = Duration::from_secs(60);

impl Replica {
    /// Whether a version must wait. A delete never waits, since it wins whatever its time is.
    pub(crate) fn is_ahead(&self, key: &Key, entry: &Entry) -> bool {
        !entry.dead && key.kind != Kind::MEMBER && !self.wait(entry).is_zero()
    }

    /// How long a version has to wait until it counts.
    fn wait(&self, entry: &Entry) -> Duration {
        let written = Duration::from_millis(entry.wall_ms().unwrap_or_default());
        let latest = Duration::from_millis(self.time_ms()) + AHEAD;
        written.saturating_sub(latest)
    }

    pub(crate) fn time_ms(&self) -> u64 {
        u64::try_from(self.time().as_millis()).unwrap_or_default()
    }

    /// When the first held version comes to count.
    pub(crate) fn held_due(&self) -> Option<Instant> {
        let waits = self.table.all_held().map(|(_, entry)| self.wait(entry));
        // A time too far away for the clock never comes.
        self.now.checked_add(waits.min()?)
    }

    /// Puts every held version whose time has come in its place.
    pub(crate) fn release_held(&mut self) {
        let due = self.table.all_held().filter(|(key, entry)| !self.is_ahead(key, entry));
        let due: Vec<(Key, Arc<Entry>)> =
            due.map(|(key, entry)| (key.clone(), entry.clone())).collect();
        for (key, entry) in due {
            self.put(Layer::Held, &key, None);
            if self.table.present(&key).is_none_or(|present| entry.beats(present)) {
                self.put_version(Layer::Present, &key, entry);
            }
        }
    }

    pub(crate) fn notice_held(&mut self, key: &Key, entry: &Entry) {
        let node = entry.writer().cloned().unwrap_or_else(|| NodeId::from(""));
        let by = self.wait(entry) + AHEAD;
        let about = Notice::Held { key: key.clone(), node: node.clone(), by: Duration::ZERO };
        self.notice(about, Notice::Held { key: key.clone(), node, by });
    }
}
