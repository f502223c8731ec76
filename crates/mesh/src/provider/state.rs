//! The state of a peer's provider: its membership at the scheduler, and the jobs that the peer has.

use std::collections::HashMap;

use base::JobId;
use protocol::mesh::WireId;
use scheduler::{LeaveReason, Membership};
use tokio::time::Instant;

use super::{peer_job::PeerJob, status::PeerStatus};
use crate::{link::Link, peer::Peer};

/// The state of a peer's provider.
#[derive(Default)]
pub(super) struct ProviderState {
    /// `None` before it has joined the scheduler, and after it has left.
    pub(super) membership: Option<Membership>,
    pub(super) left: bool,
    /// The status that the scheduler last got.
    pub(super) reported: Option<PeerStatus>,
    /// The jobs, by the ids that the peer knows them by.
    pub(super) jobs: HashMap<WireId, PeerJob>,
    /// Those ids, by the jobs' own.
    pub(super) ids: HashMap<JobId, WireId>,
}

impl ProviderState {
    /// Leaves the scheduler, which moves the jobs to other providers or ends them.
    pub(super) fn leave(&mut self, peer: &Peer) {
        self.left = true;
        self.ids.clear();
        let jobs = std::mem::take(&mut self.jobs);
        if let Some(membership) = self.membership.take() {
            tracing::info!(peer = %peer.id.short(), "a peer serves no more");
            membership.leave(LeaveReason::Closed);
        }
        // By leaving, the scheduler has decided about all of them: no verdict for each.
        for (_, job) in jobs {
            job.abandon();
        }
    }

    /// Tells the scheduler what has changed since it was last told.
    pub(super) fn report(&mut self, status: PeerStatus) {
        let (Some(membership), Some(last)) = (&self.membership, &self.reported) else { return };
        if status.models != last.models {
            membership.models(status.models.clone(), status.load);
        } else if (status.load, status.load_until) != (last.load, last.load_until) {
            // Also if the number is the same: since the last report the scheduler has adjusted it for the jobs
            // that it gave and that ended.
            membership.load(status.load);
        }
        if status.capacity != last.capacity {
            membership.capacity(status.capacity);
        }
        if status.distance != last.distance {
            membership.distance(status.distance);
        }
        if (status.speed, status.throttle) != (last.speed, last.throttle) {
            membership.condition(status.speed, status.throttle);
        }
        self.reported = Some(status);
    }

    /// The peer takes no more requests. It is given none for a moment, or until it reports another load.
    pub(super) fn mark_full(&mut self) {
        if let (Some(membership), Some(status)) = (&self.membership, &mut self.reported) {
            status.fill();
            membership.load(status.load);
        }
    }

    /// When the load that the peer has reported is too old to count, if it counts now.
    pub(super) fn load_until(&self) -> Option<Instant> {
        self.reported.as_ref()?.load_until
    }

    /// The load that the peer has reported is too old to count.
    pub(super) fn forget_load(&mut self) {
        let Some(status) = &mut self.reported else { return };
        (status.load, status.load_until) = (0, None);
        if let Some(membership) = &self.membership {
            membership.load(0);
        }
    }

    /// The job of this id, if it was sent over this link.
    pub(super) fn job_on(&mut self, link: &Link, id: &WireId) -> Option<&mut PeerJob> {
        self.jobs.get_mut(id).filter(|job| job.is_on(link))
    }

    /// Removes the job of this id, if it was sent over this link.
    pub(super) fn take_on(&mut self, link: &Link, id: &WireId) -> Option<PeerJob> {
        self.job_on(link, id)?;
        self.take(id)
    }

    /// Removes the job of this id.
    pub(super) fn take(&mut self, id: &WireId) -> Option<PeerJob> {
        let job = self.jobs.remove(id)?;
        self.ids.remove(&job.job);
        Some(job)
    }
}
