//! Answers that break off, and that others go on with.

use std::time::Duration;

use base::{JobId, ModelName, ProviderId};
use dispatch::{Ending, Output, Resumable, Verdict};

use super::{
    known::{HeldJob, JobRecord, JobState},
    oracle::Oracle,
};

impl Oracle {
    /// Its provider has begun its answer.
    pub(crate) fn resumes(&mut self, id: JobId, by: ProviderId, resumable: Option<Resumable>) {
        let continuing = self.peer(by).map(|peer| peer.continuing.clone()).unwrap_or_default();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        self.resumed += u64::from(job.broken_off.is_some());
        job.awaits = continuing.contains(&job.spec.model);
        job.resumable = resumable;
        job.broken_off = None;
    }

    /// The fate of a job in the middle of its answer.
    pub(crate) fn break_off(
        &mut self,
        mut job: JobRecord,
        held: HeldJob,
        ending: Ending,
        to_blame: bool,
    ) {
        let id = job.spec.id;
        let never = self.stopping || job.spec.pinned.is_some();
        let Some(how) = job.resumable.filter(|_| !never && job.resumes < self.config.max_resumes)
        else {
            return self.owe_end(id, ending);
        };
        (job.spec.endpoint, job.spec.serve_as) = (how.endpoint, how.serve_as);
        job.broken_off = Some(ending.clone());
        job.resumes += 1;
        job.requeues = 0;
        job.later = Vec::new();
        job.avoided = Vec::new();
        (job.absent, job.busy, job.waited) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        if self.nobody_is_left(&job) && !job.awaits {
            return self.owe_end(id, ending);
        }
        if to_blame {
            job.avoided.push(held.by);
            if self.nobody_is_left(&job) {
                job.avoided.clear();
            }
        }
        self.owed.push(Output::BrokenOff { job: id, ending });
        self.queue(job);
    }

    /// A provider says with which models it goes on.
    pub(crate) fn note_awaited(&mut self, by: ProviderId, models: &[ModelName]) {
        for job in self.jobs.values_mut() {
            let is_here = matches!(job.place, JobState::Held(held) if held.by == by);
            job.awaits |= is_here && models.contains(&job.spec.model);
        }
    }

    /// The last one that could go on is not blamed for a failure: it is away.
    pub(crate) fn verdict_on_rest(
        &self,
        job: &mut JobRecord,
        held: HeldJob,
        verdict: Verdict,
    ) -> Verdict {
        let failed = matches!(verdict, Verdict::Failed | Verdict::Overloaded);
        let mut without = job.clone();
        without.avoided.push(held.by);
        if failed && job.broken_off.is_some() && !held.begun && self.nobody_is_left(&without) {
            job.avoided = Vec::new();
            return Verdict::Unreachable;
        }
        verdict
    }

    pub(crate) fn may_be_requeued(&self, job: &JobRecord) -> bool {
        job.requeues < if job.broken_off.is_some() { 100 } else { self.config.max_requeue_count }
    }

    /// The provider that was to go on took too long to begin.
    pub(crate) fn not_gone_on_with(&mut self, mut job: JobRecord, held: HeldJob) {
        job.avoided.push(held.by);
        self.requeue(job, None);
    }
}
