//! The observers that count jobs. They see only this server's own jobs, and the cost of each at its end.

use std::{sync::Arc, time::Duration};

use access::{Keys, Tokens};
use base::{Money, ProviderId, Scope};
use scheduler::{Announcement, Break, CancelReason, JobEnd, JobFacts, LeaveReason, Observer};

/// Observers that do not see jobs of fellows at workers of this server: these count at the server that has their
/// clients.
pub(crate) struct OwnJobs {
    keys: Keys,
    observers: Vec<Arc<dyn Observer>>,
}

impl OwnJobs {
    /// Observers that see this server's own jobs. `keys` have the prices.
    pub(crate) fn new(keys: Keys, observers: Vec<Arc<dyn Observer>>) -> Self {
        Self { keys, observers }
    }

    fn tell(&self, job: &JobFacts, tell: impl Fn(&dyn Observer)) {
        if job.lent.is_none() {
            self.observers.iter().for_each(|observer| tell(&**observer));
        }
    }

    /// The cost of a job, by the price of its model at the provider of this name. `None` without a price, if no
    /// provider had the job, and for jobs of rooms, whose members lend for nothing.
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

impl Observer for OwnJobs {
    fn accepted(&self, job: &JobFacts) {
        self.tell(job, |observer| observer.accepted(job));
    }

    fn assigned(&self, job: &JobFacts, provider: ProviderId, waited: Duration) {
        self.tell(job, |observer| observer.assigned(job, provider, waited));
    }

    fn requeued(&self, job: &JobFacts) {
        self.tell(job, |observer| observer.requeued(job));
    }

    fn broke_off(&self, job: &JobFacts, broken: &Break) {
        self.tell(job, |observer| observer.broke_off(job, broken));
    }

    fn first_byte(&self, job: &JobFacts, after: Duration) {
        self.tell(job, |observer| observer.first_byte(job, after));
    }

    fn canceled(&self, job: &JobFacts, reason: CancelReason) {
        self.tell(job, |observer| observer.canceled(job, reason));
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        match self.cost(job, ended) {
            Some(cost) => {
                let priced = JobEnd { cost: Some(cost), ..ended.clone() };
                self.tell(job, |observer| observer.ended(job, &priced));
            }
            None => self.tell(job, |observer| observer.ended(job, ended)),
        }
    }

    fn announced(&self, announcement: &Announcement<'_>) {
        self.observers.iter().for_each(|observer| observer.announced(announcement));
    }

    fn left(&self, provider: ProviderId, why: LeaveReason) {
        self.observers.iter().for_each(|observer| observer.left(provider, why));
    }
}
