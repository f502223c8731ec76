//! Puts the cost of a job into its end, for the observers that count it.

use std::{sync::Arc, time::Duration};

use access::{Keys, Tokens};
use base::{Money, ProviderId, Scope};
use scheduler::{Announcement, Break, CancelReason, JobEnd, JobFacts, LeaveReason, Observer};

/// Observers that see what a job cost, by the prices of its end.
pub(crate) struct Priced {
    keys: Keys,
    observers: Vec<Arc<dyn Observer>>,
}

impl Priced {
    pub(crate) fn new(keys: Keys, observers: Vec<Arc<dyn Observer>>) -> Self {
        Self { keys, observers }
    }

    /// By the name that served it. What members of a room lend costs nothing.
    fn cost(&self, job: &JobFacts, ended: &JobEnd) -> Option<Money> {
        let provider = ended.provider_name.as_deref();
        let model = ended.served_model.as_ref().unwrap_or(&job.model).as_str();
        let tokens = Tokens {
            prompt: ended.usage.prompt_tokens.unwrap_or(0),
            cached: ended.usage.cached_tokens.unwrap_or(0),
            completion: ended.usage.completion_tokens.unwrap_or(0),
        };
        let ours = job.scope == Scope::server() && ended.provider.is_some();
        ours.then(|| self.keys.prices().cost(model, provider, tokens)).flatten()
    }
}

impl Observer for Priced {
    fn accepted(&self, job: &JobFacts) {
        self.observers.iter().for_each(|observer| observer.accepted(job));
    }

    fn assigned(&self, job: &JobFacts, provider: ProviderId, waited: Duration) {
        self.observers.iter().for_each(|observer| observer.assigned(job, provider, waited));
    }

    fn requeued(&self, job: &JobFacts) {
        self.observers.iter().for_each(|observer| observer.requeued(job));
    }

    fn broke_off(&self, job: &JobFacts, broken: &Break) {
        self.observers.iter().for_each(|observer| observer.broke_off(job, broken));
    }

    fn first_byte(&self, job: &JobFacts, after: Duration) {
        self.observers.iter().for_each(|observer| observer.first_byte(job, after));
    }

    fn canceled(&self, job: &JobFacts, reason: CancelReason) {
        self.observers.iter().for_each(|observer| observer.canceled(job, reason));
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        match self.cost(job, ended) {
            Some(cost) => {
                let priced = JobEnd { cost: Some(cost), ..ended.clone() };
                self.observers.iter().for_each(|observer| observer.ended(job, &priced));
            }
            None => self.observers.iter().for_each(|observer| observer.ended(job, ended)),
        }
    }

    fn announced(&self, announcement: &Announcement<'_>) {
        self.observers.iter().for_each(|observer| observer.announced(announcement));
    }

    fn left(&self, provider: ProviderId, why: LeaveReason) {
        self.observers.iter().for_each(|observer| observer.left(provider, why));
    }
}
