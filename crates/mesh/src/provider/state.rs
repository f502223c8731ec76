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
    /// The jobs, by the ids of their requests at the peer.
    pub(super) jobs: HashMap<WireId, PeerJob>,
    /// The ids of the requests, by the ids of the jobs.
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
        // The scheduler moved or ended all of these jobs when the membership left, so none needs a
        // verdict.
        for (_, job) in jobs {
            job.abandon();
        }
    }

    /// Tells the scheduler what has changed since the last report.
    pub(super) fn report(&mut self, status: PeerStatus) {
        let (Some(membership), Some(last)) = (&self.membership, &self.reported) else { return };
        if status.models != last.models {
            membership.models(status.models.clone(), status.load);
        } else if (status.load, status.load_until) != (last.load, last.load_until) {
            // Reported even if the number is the same: the scheduler has adjusted its own number
            // meanwhile, for jobs that began and ended.
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

    /// Keeps jobs from a peer that takes no more: for a moment, or until it reports another load.
    pub(super) fn mark_full(&mut self) {
        if let (Some(membership), Some(status)) = (&self.membership, &mut self.reported) {
            status.fill();
            membership.load(status.load);
        }
    }

    /// When the reported load becomes too old to count. `None` if it does not count now.
    pub(super) fn load_until(&self) -> Option<Instant> {
        self.reported.as_ref()?.load_until
    }

    /// Drops the reported load, because it is too old to count.
    pub(super) fn forget_load(&mut self) {
        let Some(status) = &mut self.reported else { return };
        (status.load, status.load_until) = (0, None);
        if let Some(membership) = &self.membership {
            membership.load(0);
        }
    }

    /// The job of the request with this id, if it was sent over this link.
    pub(super) fn job_on(&mut self, link: &Link, id: &WireId) -> Option<&mut PeerJob> {
        self.jobs.get_mut(id).filter(|job| job.is_on(link))
    }

    /// Removes the job of the request with this id, if it was sent over this link.
    pub(super) fn take_on(&mut self, link: &Link, id: &WireId) -> Option<PeerJob> {
        self.job_on(link, id)?;
        self.take(id)
    }

    /// Removes the job of the request with this id.
    pub(super) fn take(&mut self, id: &WireId) -> Option<PeerJob> {
        let job = self.jobs.remove(id)?;
        self.ids.remove(&job.job);
        Some(job)
    }
}
