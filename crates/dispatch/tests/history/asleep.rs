//! Providers that miss an acknowledgement, and backends that take no requests.

use std::time::Duration;

use base::{JobId, ProviderId};
use dispatch::{CancelReason, Ending};

use super::{
    known::{BackendState, HeldJob, JobRecord, JobState},
    oracle::Oracle,
    rules::{Verdict, ensure},
};

impl Oracle {
    /// A sign of life of a provider.
    pub(crate) fn heard(&mut self, id: ProviderId) {
        if let Some(peer) = self.peer_mut(id) {
            peer.asleep = false;
        }
    }

    /// A sign that a provider's backend is there.
    pub(crate) fn backend_is_there(&mut self, id: ProviderId) {
        if let Some(peer) = self.peer_mut(id) {
            (peer.backend, peer.last_wait) = (BackendState::Ready, None);
        }
    }

    /// A backend takes no requests.
    pub(crate) fn refused(&mut self, id: ProviderId, away: bool) {
        let now = self.now;
        let Some(peer) = self.peer_mut(id) else { return };
        if matches!(peer.backend, BackendState::Waiting { .. }) {
            return;
        }
        let longest = Duration::from_secs(5);
        let wait = peer.last_wait.map_or(Duration::from_millis(500), |last| last * 2).min(longest);
        peer.last_wait = Some(wait);
        peer.backend = BackendState::Waiting { away, until: now + wait };
    }

    /// Backends that are to be tried again now.
    pub(crate) fn backends_are_tried(&mut self) {
        let now = self.now;
        for peer in &mut self.peers {
            match peer.backend {
                BackendState::Waiting { away, until } if until <= now => {
                    peer.backend = BackendState::Trying { away };
                    self.due_together = true;
                }
                _ => {}
            }
        }
    }

    /// Before the deadlines of this moment: whether some providers are asleep depends on their order.
    pub(crate) fn some_doze(&mut self) {
        for id in self.overdue() {
            if let Some(JobState::Held(held)) = self.jobs.get(&id).map(|job| job.place)
                && let Some(peer) = self.peer_mut(held.by)
            {
                peer.dozes = true;
            }
        }
    }

    /// After them: who missed an acknowledgement is asleep. Jobs that cannot go elsewhere stay.
    pub(crate) fn dozing_ends(&mut self) -> Verdict {
        for peer in self.peers.iter_mut().filter(|peer| peer.dozes) {
            (peer.dozes, peer.asleep) = (false, true);
        }
        for id in self.overdue() {
            let Some(job) = self.jobs.get(&id).cloned() else { continue };
            let JobState::Held(held) = job.place else { continue };
            ensure(self.stays(&job, held), || format!("{id} could go elsewhere"))?;
            let deadline = self.acknowledgement_deadline(held);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.place = JobState::Held(HeldJob { deadline, ..held });
            }
            self.kept += 1;
        }
        Ok(())
    }

    /// A job moves because its provider has not acknowledged it.
    pub(crate) fn moved_on(&mut self, id: JobId, by: ProviderId) -> Verdict {
        let Some((job, held)) = self.release(id) else { return Ok(()) };
        ensure(!self.stays(&job, held), || format!("{id} has no other place"))?;
        self.note_cancel(by, id);
        self.woken += 1;
        if self.has_other_provider(&job, by) {
            self.requeue(job, None);
        } else {
            self.fall_back(job, Ending::RequestTimeout);
        }
        self.retire_if_idle(by, true);
        Ok(())
    }

    /// Whether a cancellation for this reason is about a missing acknowledgement.
    pub(crate) fn is_overdue(&self, id: JobId, by: ProviderId, reason: CancelReason) -> bool {
        let held = |job: &JobRecord| matches!(job.place, JobState::Held(held) if held.by == by);
        let here = self.jobs.get(&id).is_some_and(held);
        reason == CancelReason::Timeout && here && self.overdue().contains(&id)
    }

    pub(crate) fn acknowledgement_deadline(&self, held: HeldJob) -> std::time::Instant {
        let (ack, request) = (self.config.acknowledge_timeout, self.config.request_timeout);
        (self.now + ack).min(held.since + request)
    }

    /// The jobs that should have been acknowledged by now, and have not used up their time.
    fn overdue(&self) -> Vec<JobId> {
        let (now, request) = (self.now, self.config.request_timeout);
        let due = |job: &&JobRecord| match job.place {
            JobState::Held(held) => {
                let open = !held.begun && !held.acknowledged;
                open && held.deadline <= now && now < held.since + request
            }
            _ => false,
        };
        self.jobs.values().filter(due).map(|job| job.spec.id).collect()
    }

    fn stays(&self, job: &JobRecord, held: HeldJob) -> bool {
        let other = self.has_other_provider(job, held.by);
        self.stopping || !(other || self.has_served_fallback(job))
    }
}
