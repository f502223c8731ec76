//! The state of a place: its membership, and the jobs of its peer.

use std::collections::HashMap;

use base::JobId;
use protocol::mesh::WireId;
use scheduler::{LeaveReason, Membership};
use tokio::time::Instant;

use super::{peer_job::PeerJob, wanted::Wanted};
use crate::{link::Link, peer::Peer};

/// The state of a place.
#[derive(Default)]
pub(super) struct ProviderState {
    /// `None` before it has joined, and after it has left.
    pub(super) membership: Option<Membership>,
    pub(super) left: bool,
    /// The offer that the scheduler got last.
    pub(super) told: Option<Wanted>,
    pub(super) asked: HashMap<WireId, PeerJob>,
    pub(super) ids: HashMap<JobId, WireId>,
}

impl ProviderState {
    /// Its jobs are the scheduler's to move or to end.
    pub(super) fn leave(&mut self, peer: &Peer) {
        self.left = true;
        self.ids.clear();
        let asked = std::mem::take(&mut self.asked);
        if let Some(membership) = self.membership.take() {
            tracing::info!(peer = %peer.id.short(), "a peer serves no more");
            membership.leave(LeaveReason::Closed);
        }
        for (_, asked) in asked {
            asked.abandon();
        }
    }

    pub(super) fn tell(&mut self, wanted: Wanted) {
        let (Some(membership), Some(told)) = (&self.membership, &self.told) else { return };
        if wanted.models != told.models {
            membership.models(wanted.models.clone(), wanted.load);
        } else if (wanted.load, wanted.load_until) != (told.load, told.load_until) {
            // The same number is passed on when it comes again: the scheduler counts on from the last one.
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

    /// It says that it takes no more: for a moment, or until it says otherwise, it is given nothing.
    pub(super) fn mark_full(&mut self) {
        if let (Some(membership), Some(told)) = (&self.membership, &mut self.told) {
            told.fill();
            membership.load(told.load);
        }
    }

    /// When what it has said of its load is too old to count, if it counts now.
    pub(super) fn load_until(&self) -> Option<Instant> {
        self.told.as_ref()?.load_until
    }

    /// Forgets its reported load, which is too old to count.
    pub(super) fn forget_load(&mut self) {
        let Some(told) = &mut self.told else { return };
        (told.load, told.load_until) = (0, None);
        if let Some(membership) = &self.membership {
            membership.load(0);
        }
    }

    pub(super) fn on(&mut self, link: &Link, id: &WireId) -> Option<&mut PeerJob> {
        self.asked.get_mut(id).filter(|asked| asked.is_on(link))
    }

    pub(super) fn take_on(&mut self, link: &Link, id: &WireId) -> Option<PeerJob> {
        self.on(link, id)?;
        self.take(id)
    }

    pub(super) fn take(&mut self, id: &WireId) -> Option<PeerJob> {
        let asked = self.asked.remove(id)?;
        self.ids.remove(&asked.job);
        Some(asked)
    }
}
