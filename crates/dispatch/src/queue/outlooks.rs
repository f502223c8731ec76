//! Waiting jobs with fallbacks left, by the models that they may use.

use std::collections::{BTreeMap, BTreeSet};

use base::{JobId, ModelName, Scope};

use crate::job::Job;

/// Jobs in the order of acceptance.
type InOrder = BTreeSet<(u64, JobId)>;

/// Finds the jobs whose prospects change when a provider joins, changes or leaves. A job is listed
/// under its present model and under each fallback that it has left. A job without fallbacks is not
/// listed, so it costs nothing here.
#[derive(Debug, Default)]
pub(crate) struct Outlooks(BTreeMap<(Scope, ModelName), InOrder>);

impl Outlooks {
    /// O(its fallbacks).
    pub(super) fn add(&mut self, job: &Job) {
        for name in names(job) {
            self.0.entry(name).or_default().insert((job.seq, job.id()));
        }
    }

    /// Removes a job whose models are the same as when it was added. O(its fallbacks).
    pub(super) fn remove(&mut self, job: &Job) {
        for name in names(job) {
            if let Some(jobs) = self.0.get_mut(&name) {
                jobs.remove(&(job.seq, job.id()));
                if jobs.is_empty() {
                    self.0.remove(&name);
                }
            }
        }
    }

    /// The jobs that name one of these models, `*` standing for all, oldest first. O(those jobs).
    pub(crate) fn of(&self, scope: &Scope, models: &BTreeSet<ModelName>) -> Vec<JobId> {
        let mut all = InOrder::new();
        if models.contains("*") {
            let first = (scope.clone(), ModelName::from(""));
            let of_scope = self.0.range(first..).take_while(|((other, _), _)| other == scope);
            of_scope.for_each(|(_, jobs)| all.extend(jobs));
        } else {
            let named = models.iter().map(|model| (scope.clone(), model.clone()));
            named.filter_map(|name| self.0.get(&name)).for_each(|jobs| all.extend(jobs));
        }
        all.into_iter().map(|(_, job)| job).collect()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn names(job: &Job) -> impl Iterator<Item = (Scope, ModelName)> {
    let left = job.targets_left().iter().map(|target| &target.model);
    let present = (left.len() > 0).then_some(&job.spec.model);
    present.into_iter().chain(left).map(|model| (job.spec.scope.clone(), model.clone()))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{
        JobSpec,
        fixture::{job, or_else, spec},
    };

    fn found(outlooks: &Outlooks, scope: &Scope, models: &[&str]) -> Vec<JobId> {
        outlooks.of(scope, &models.iter().map(|model| ModelName::from(*model)).collect())
    }

    #[test]
    fn a_job_is_found_once_by_whichever_models_it_has_left() {
        let room = Scope::from("room");
        let elsewhere = JobSpec { scope: room.clone(), ..or_else(4, &["n"]) };
        let specs = [or_else(3, &["n", "o"]), or_else(1, &["o"]), spec(2), elsewhere];
        let jobs = specs.into_iter().zip(1..);
        let mut jobs: Vec<_> =
            jobs.map(|(spec, seq)| Job::new(spec, seq, Instant::now())).collect();
        let mut outlooks = Outlooks::default();
        jobs.iter().for_each(|job| outlooks.add(job));
        let server = Scope::server();
        assert_eq!(found(&outlooks, &server, &["m"]), [job(3), job(1)], "not without fallbacks");
        assert_eq!(found(&outlooks, &server, &["n"]), [job(3)]);
        assert_eq!(found(&outlooks, &server, &["n", "o", "p"]), [job(3), job(1)]);
        assert_eq!(found(&outlooks, &server, &["*", "x"]), [job(3), job(1)]);
        assert_eq!(found(&outlooks, &room, &["*"]), [job(4)]);
        outlooks.remove(&jobs[0]);
        jobs[0].next_target();
        outlooks.add(&jobs[0]);
        assert_eq!(found(&outlooks, &server, &["m"]), [job(1)], "what is behind it is over");
        assert_eq!(found(&outlooks, &server, &["n"]), [job(3)]);
        jobs.iter().for_each(|job| outlooks.remove(job));
        assert!(outlooks.is_empty());
    }
}
