//! Observers that count: they hear of this server's own jobs only.

use std::time::Duration;

use base::ProviderId;
use scheduler::{Announcement, Break, CancelReason, JobEnd, JobFacts, LeaveReason, Observer};

/// An observer that hears of everything but jobs of other servers for workers of this one. What these use is counted
/// at the server that has their clients.
pub(crate) struct OwnJobs<O>(pub(crate) O);

impl<O: Observer> Observer for OwnJobs<O> {
    fn accepted(&self, job: &JobFacts) {
        self.of_own(job, |observer| observer.accepted(job));
    }

    fn assigned(&self, job: &JobFacts, provider: ProviderId, waited: Duration) {
        self.of_own(job, |observer| observer.assigned(job, provider, waited));
    }

    fn requeued(&self, job: &JobFacts) {
        self.of_own(job, |observer| observer.requeued(job));
    }

    fn broke_off(&self, job: &JobFacts, broken: &Break) {
        self.of_own(job, |observer| observer.broke_off(job, broken));
    }

    fn first_byte(&self, job: &JobFacts, after: Duration) {
        self.of_own(job, |observer| observer.first_byte(job, after));
    }

    fn canceled(&self, job: &JobFacts, reason: CancelReason) {
        self.of_own(job, |observer| observer.canceled(job, reason));
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.of_own(job, |observer| observer.ended(job, ended));
    }

    fn announced(&self, announcement: &Announcement<'_>) {
        self.0.announced(announcement);
    }

    fn left(&self, provider: ProviderId, why: LeaveReason) {
        self.0.left(provider, why);
    }
}

impl<O: Observer> OwnJobs<O> {
    fn of_own(&self, job: &JobFacts, tell: impl FnOnce(&O)) {
        if job.lent.is_none() {
            tell(&self.0);
        }
    }
}
