//! A provider's faults, and the rests that follow.

use std::time::{Duration, Instant};

use base::JobId;

use crate::config::Config;

/// The health of a provider.
///
/// Consecutive faults send a provider to rest; after the rest it gets one trial job at a time. A
/// good answer makes it healthy again; a fault sends it to a rest twice as long. The ends of jobs
/// that it got before its last rest say nothing about the time since, so they neither end a rest
/// nor lengthen it.
#[derive(Debug)]
pub(crate) struct Health {
    standing: Standing,
    /// The number of consecutive faults.
    faults: u32,
    /// The number of rests so far.
    rests: u32,
    /// The length of the last rest; `None` after a good answer.
    last_rest: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Healthy,
    /// The end of the rest; `None` if that is too far away to be a point in time.
    Resting(Option<Instant>),
    Trial(Option<JobId>),
}

impl Health {
    pub(crate) fn new() -> Self {
        Self { standing: Standing::Healthy, faults: 0, rests: 0, last_rest: None }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.standing == Standing::Healthy
    }

    /// Whether it may get a job while other providers are healthy.
    pub(crate) fn may_take(&self) -> bool {
        matches!(self.standing, Standing::Healthy | Standing::Trial(None))
    }

    pub(crate) fn rests(&self) -> u32 {
        self.rests
    }

    pub(crate) fn resting_until(&self) -> Option<Instant> {
        match self.standing {
            Standing::Resting(until) => until,
            Standing::Healthy | Standing::Trial(_) => None,
        }
    }

    /// Records that it got the job.
    pub(crate) fn given(&mut self, job: JobId) {
        if self.standing == Standing::Trial(None) {
            self.standing = Standing::Trial(Some(job));
        }
    }

    /// Records that it no longer has the job, for any reason.
    pub(crate) fn released(&mut self, job: JobId) {
        if self.standing == Standing::Trial(Some(job)) {
            self.standing = Standing::Trial(None);
        }
    }

    /// Records a good answer to a job that it got after its rest number `rests`.
    pub(crate) fn answered(&mut self, rests: u32) {
        // A job from before the rest says nothing about the time since.
        if self.is_healthy() || rests == self.rests {
            *self = Self { rests: self.rests, ..Self::new() };
        }
    }

    /// Records a failed job that it got after its rest number `rests`. Returns the length of the
    /// rest that begins now, if one begins.
    pub(crate) fn fault(&mut self, rests: u32, now: Instant, config: &Config) -> Option<Duration> {
        let counts = self.is_healthy() || rests == self.rests;
        if !counts || config.faults_to_rest == 0 {
            return None;
        }
        self.faults = self.faults.saturating_add(1);
        // On trial one fault is enough: there was no good answer since the last ones.
        let enough = !self.is_healthy() || self.faults >= config.faults_to_rest;
        enough.then(|| self.rest(now, config))
    }

    /// Records the end of its rest.
    pub(crate) fn rested(&mut self) {
        if matches!(self.standing, Standing::Resting(_)) {
            self.standing = Standing::Trial(None);
        }
    }

    fn rest(&mut self, now: Instant, config: &Config) -> Duration {
        let twice = self.last_rest.map(|last| last.saturating_mul(2));
        let rest = twice.unwrap_or(config.rest_first).min(config.rest_last);
        self.standing = Standing::Resting(now.checked_add(rest));
        // The jobs that it has now carry the older number, and do not count after this rest.
        self.rests = self.rests.wrapping_add(1);
        self.last_rest = Some(rest);
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(rest: Option<Duration>) -> Option<u64> {
        rest.map(|rest| rest.as_secs())
    }

    #[test]
    fn rests_after_three_faults_in_a_row_and_doubles() {
        let (now, config) = (Instant::now(), Config::default());
        let mut health = Health::new();
        assert_eq!(health.fault(0, now, &config), None);
        health.answered(0);
        assert_eq!([0, 0].map(|rests| health.fault(rests, now, &config)), [None, None]);
        assert_eq!(seconds(health.fault(0, now, &config)), Some(5));
        let mut later = Vec::new();
        for _ in 0..5 {
            health.rested();
            later.push(seconds(health.fault(health.rests(), now, &config)).unwrap());
        }
        assert_eq!(later, [10, 20, 40, 60, 60]);
    }

    #[test]
    fn one_trial_at_a_time_until_it_answers_well() {
        let (now, config) = (Instant::now(), Config { faults_to_rest: 1, ..Config::default() });
        let [first, second] = [1, 2].map(JobId::from_random);
        let mut health = Health::new();
        health.fault(0, now, &config);
        assert!(!health.may_take() && health.resting_until().is_some());
        health.rested();
        assert!(health.may_take() && !health.is_healthy());
        health.given(first);
        assert!(!health.may_take());
        health.released(first);
        health.given(second);
        health.answered(health.rests());
        assert!(health.is_healthy());
        assert_eq!(seconds(health.fault(1, now, &config)), Some(5), "the doubling starts again");
    }

    #[test]
    fn jobs_given_before_the_rest_change_nothing() {
        let (now, config) = (Instant::now(), Config { faults_to_rest: 1, ..Config::default() });
        let mut health = Health::new();
        assert!(health.fault(0, now, &config).is_some());
        assert_eq!(health.fault(0, now, &config), None);
        health.answered(0);
        assert!(!health.may_take());
    }

    #[test]
    fn zero_never_rests() {
        let config = Config { faults_to_rest: 0, ..Config::default() };
        let mut health = Health::new();
        assert!((0..9).all(|_| health.fault(0, Instant::now(), &config).is_none()));
    }
}
