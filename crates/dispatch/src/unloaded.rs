//! The models that a provider serves and does not have in memory.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use base::{JobId, ModelName};

use crate::{input::Unloaded, route::Start};

/// How long loading a model is assumed to take while that is not known.
const GUESS: Duration = Duration::from_secs(10);

/// A provider's models without those that it has in memory or does not mention. For most providers
/// this is empty.
#[derive(Debug, Default)]
pub(crate) struct UnloadedModels(BTreeMap<ModelName, Loading>);

#[derive(Debug)]
struct Loading {
    /// Since when it is being loaded; `None` while it is not.
    since: Option<Instant>,
    /// How long loading takes, if that is known.
    takes: Option<Duration>,
    /// The job for which it counts as being loaded although the provider has not said so.
    assumed_for: Option<JobId>,
}

impl UnloadedModels {
    pub(crate) fn new(now: Instant, reported: Vec<Unloaded>) -> Self {
        let mut models = Self::default();
        models.report(now, reported);
        models
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records all models that are not in memory now. A model that a job was given for still counts
    /// as being loaded: the provider may not have begun yet.
    pub(crate) fn report(&mut self, now: Instant, reported: Vec<Unloaded>) {
        let mut before = std::mem::take(&mut self.0);
        for Unloaded { model, is_loading, takes } in reported {
            let old = before.remove(&model);
            let since = old.as_ref().and_then(|old| old.since);
            // Once the provider itself reports the load, the load does not end with the job.
            let assumed_for = old.and_then(|old| old.assumed_for).filter(|_| !is_loading);
            let loads = is_loading || assumed_for.is_some();
            let since = loads.then(|| since.unwrap_or(now));
            self.0.insert(model, Loading { since, takes, assumed_for });
        }
    }

    /// Records that a job of the model was given to the provider, which loads the model for it if
    /// need be. Returns whether such a load begins now.
    pub(crate) fn given(&mut self, now: Instant, model: &ModelName, job: JobId) -> bool {
        let mut begins = false;
        if let Some(loading) = self.0.get_mut(model)
            && (loading.since.is_none() || loading.assumed_for.is_some())
        {
            begins = loading.since.is_none();
            loading.since.get_or_insert(now);
            // The last job counts: the load goes on for it after earlier ones have left.
            loading.assumed_for = Some(job);
        }
        begins
    }

    /// Records that a job has left the provider: no model is loaded for it any more. Returns
    /// whether one was.
    pub(crate) fn released(&mut self, model: &ModelName, job: JobId) -> bool {
        let loading = self.0.get_mut(model).filter(|loading| loading.assumed_for == Some(job));
        let was_loading = loading.is_some();
        if let Some(loading) = loading {
            (loading.since, loading.assumed_for) = (None, None);
        }
        was_loading
    }

    /// Records that an answer of the model has begun, so it is in memory. Returns whether that is
    /// news.
    pub(crate) fn answers(&mut self, model: &ModelName) -> bool {
        self.0.remove(model).is_some()
    }

    /// How soon the provider could begin with the model.
    pub(crate) fn start(&self, now: Instant, model: &ModelName) -> Start {
        let Some(loading) = self.0.get(model) else { return Start::AtOnce };
        let takes = loading.takes.unwrap_or(GUESS);
        match loading.since {
            Some(since) => {
                Start::Loading(takes.saturating_sub(now.saturating_duration_since(since)))
            }
            None => Start::Unloaded(takes),
        }
    }

    /// How long loading the model takes, if it is neither in memory nor being loaded.
    pub(crate) fn load_time(&self, model: &ModelName) -> Option<Duration> {
        let idle = self.0.get(model).filter(|loading| loading.since.is_none());
        idle.map(|loading| loading.takes.unwrap_or(GUESS))
    }

    /// Since when the model is being loaded, and how long that takes, where it is known.
    pub(crate) fn loading(&self, model: &ModelName) -> Option<(Instant, Option<Duration>)> {
        let loading = self.0.get(model)?;
        Some((loading.since?, loading.takes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{SECOND, job};

    fn unloaded(is_loading: bool, seconds: Option<u32>) -> Vec<Unloaded> {
        let takes = seconds.map(|seconds| SECOND * seconds);
        vec![Unloaded { model: "m".into(), is_loading, takes }]
    }

    #[test]
    fn a_model_of_which_nothing_is_said_is_in_memory() {
        let now = Instant::now();
        let mut models = UnloadedModels::new(now, unloaded(false, Some(3)));
        let start = |models: &UnloadedModels, name: &str| models.start(now, &name.into());
        assert_eq!(start(&models, "n"), Start::AtOnce);
        assert_eq!(start(&models, "m"), Start::Unloaded(SECOND * 3));
        models.report(now, unloaded(false, None));
        assert_eq!(start(&models, "m"), Start::Unloaded(GUESS));
        assert!(models.answers(&"m".into()) && !models.answers(&"m".into()));
        assert_eq!(start(&models, "m"), Start::AtOnce);
    }

    #[test]
    fn a_load_counts_from_its_first_report() {
        let now = Instant::now();
        let mut models = UnloadedModels::new(now, unloaded(true, Some(9)));
        models.report(now + SECOND * 4, unloaded(true, Some(9)));
        let left = |at: Instant| models.start(at, &"m".into());
        assert_eq!(left(now + SECOND * 5), Start::Loading(SECOND * 4));
        assert_eq!(left(now + SECOND * 50), Start::Loading(Duration::ZERO));
        assert_eq!(models.loading(&"m".into()), Some((now, Some(SECOND * 9))));
        assert_eq!(models.load_time(&"m".into()), None);
    }

    #[test]
    fn a_model_is_taken_to_be_loading_while_the_provider_has_a_job_for_it() {
        let (now, model) = (Instant::now(), ModelName::from("m"));
        let mut models = UnloadedModels::new(now, unloaded(false, Some(3)));
        models.given(now, &model, job(1));
        models.given(now + SECOND, &model, job(2));
        models.report(now + SECOND, unloaded(false, Some(3)));
        models.released(&model, job(1));
        assert_eq!(models.start(now + SECOND, &model), Start::Loading(SECOND * 2));
        models.released(&model, job(2));
        assert_eq!(models.start(now + SECOND, &model), Start::Unloaded(SECOND * 3));
        models.report(now, unloaded(true, Some(3)));
        models.given(now, &model, job(3));
        models.released(&model, job(3));
        assert_eq!(models.start(now, &model), Start::Loading(SECOND * 3), "it said so itself");
    }
}
