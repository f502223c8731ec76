//! The steps that observers see once the lock is released.

use std::{sync::Arc, time::Duration};

use base::ProviderId;
use dispatch::CancelReason;

use super::entry::TracedJob;
use crate::{observer::JobEnd, resume::Break};

/// A step that observers see.
#[expect(clippy::large_enum_variant, reason = "the end is the most frequent, and mostly alone")]
pub(super) enum Note {
    Assigned(Arc<TracedJob>, ProviderId, Duration),
    Requeued(Arc<TracedJob>),
    FirstByte(Arc<TracedJob>, Duration),
    BrokeOff(Arc<TracedJob>, Break),
    Canceled(Arc<TracedJob>, CancelReason),
    Ended(Arc<TracedJob>, JobEnd),
}

/// The notes of one turn under the lock, in order. Mostly there is only one, which needs no
/// allocation.
#[derive(Default)]
pub(super) struct Notes {
    first: Option<Note>,
    more: Vec<Note>,
}

impl Notes {
    pub(super) fn push(&mut self, note: Note) {
        match self.first {
            None => self.first = Some(note),
            Some(_) => self.more.push(note),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Note> {
        self.first.iter().chain(&self.more)
    }
}
