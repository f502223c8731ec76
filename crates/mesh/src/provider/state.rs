//! What a place has: its membership, and the jobs of its peer.

use std::collections::HashMap;

use base::JobId;
use protocol::mesh::WireId;
use scheduler::{Gone, Membership};

use super::{asked::Asked, wanted::Wanted};
use crate::{link::Link, peer::Peer};

/// What a place has.
#[derive(Default)]
pub(super) struct State {
    /// `None` before it has joined, and after it has left.
    pub(super) membership: Option<Membership>,
    pub(super) left: bool,
    /// What the scheduler was told last.
    pub(super) told: Option<Wanted>,
    pub(super) asked: HashMap<WireId, Asked>,
    pub(super) ids: HashMap<JobId, WireId>,
}

impl State {
    /// Its jobs are the scheduler's to move or to end.
    pub(super) fn leave(&mut self, peer: &Peer) {
        self.left = true;
        self.ids.clear();
        let asked = std::mem::take(&mut self.asked);
        if let Some(membership) = self.membership.take() {
            tracing::info!(peer = %peer.id.short(), "a peer serves no more");
            membership.leave(Gone::Closed);
        }
        for (_, asked) in asked {
            asked.abandon();
        }
    }

    pub(super) fn tell(&mut self, wanted: Wanted) {
        let (Some(membership), Some(told)) = (&self.membership, &self.told) else { return };
        if wanted.models != told.models {
            membership.models(wanted.models.clone(), wanted.load);
        } else if wanted.load != told.load {
            membership.load(wanted.load);
        }
        if wanted.capacity != told.capacity {
            membership.capacity(wanted.capacity);
        }
        if wanted.distance != told.distance {
            membership.distance(wanted.distance);
        }
        if (wanted.speed, wanted.throttle) != (told.speed, told.throttle) {
            membership.condition(wanted.speed, wanted.throttle);
        }
        self.told = Some(wanted);
    }

    /// It says that it takes no more: until it says otherwise, it is given nothing.
    pub(super) fn is_full(&mut self) {
        if let (Some(membership), Some(told)) = (&self.membership, &mut self.told) {
            // One more than it takes: the job that it refuses is about to be taken off.
            told.load = told.capacity.saturating_add(1);
            membership.load(told.load);
        }
    }

    pub(super) fn on(&mut self, link: &Link, id: &WireId) -> Option<&mut Asked> {
        self.asked.get_mut(id).filter(|asked| asked.is_on(link))
    }

    pub(super) fn take_on(&mut self, link: &Link, id: &WireId) -> Option<Asked> {
        self.on(link, id)?;
        self.take(id)
    }

    pub(super) fn take(&mut self, id: &WireId) -> Option<Asked> {
        let asked = self.asked.remove(id)?;
        self.ids.remove(&asked.job);
        Some(asked)
    }
}
