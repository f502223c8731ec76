//! Facts about models, from all providers that serve them.

use std::collections::{BTreeMap, BTreeSet};

use base::{Capabilities, Capability, Endpoint, Endpoints, ModelFacts, ModelName, Scope};
use scheduler::WorkerStatus;

use super::served::known_as;
use crate::{request_scope::RequestScope, state::Api};

/// The known facts about a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) facts: ModelFacts,
    /// The endpoints that its providers serve.
    pub(crate) endpoints: Endpoints,
    /// The names of the machines whose workers serve it.
    pub(crate) machines: BTreeSet<String>,
}

/// A model as it is listed.
pub(super) struct ModelEntry {
    pub(super) id: ModelName,
    /// When it was first seen, in seconds since 1970.
    pub(super) created: u64,
    pub(super) details: Details,
}

impl Details {
    /// The facts about a model that two providers serve: the shorter context, the better load state, and the way of
    /// going on with answers only if both have the same. Of every other fact the first that is known.
    pub(crate) fn or(self, other: Self) -> Self {
        let shorter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let (ours, theirs) = (&self.facts, &other.facts);
        let context_tokens = shorter(ours.context_tokens, theirs.context_tokens);
        let load = ours.load.into_iter().chain(theirs.load).min();
        let continuation = ours.continuation.filter(|_| ours.continuation == theirs.continuation);
        let facts = ModelFacts { context_tokens, load, continuation, ..self.facts.or(other.facts) };
        let endpoints = self.endpoints.union(other.endpoints);
        let mut machines = self.machines;
        machines.extend(other.machines);
        Self { facts, endpoints, machines }
    }

    /// The paths at which requests for the model are served, with or without translation.
    pub(crate) fn paths(&self) -> Vec<&'static str> {
        let is_served = |endpoint: &Endpoint| {
            self.endpoints.contains(*endpoint)
                || translate::served_as(*endpoint).meets(self.endpoints)
        };
        let served = Endpoint::ALL.into_iter().filter(is_served);
        let mut paths: Vec<_> =
            served.filter(|endpoint| self.is_able(*endpoint)).map(Endpoint::path).collect();
        // Two endpoints with the same path follow each other in `Endpoint::ALL`.
        paths.dedup();
        paths
    }

    /// Whether the model can do what the endpoint is for, as far as that is known.
    fn is_able(&self, endpoint: Endpoint) -> bool {
        let Some(able) = self.facts.capabilities else { return true };
        if endpoint.is_untranslated() {
            // No model server reports capabilities for these endpoints, and a provider lists only those that it has.
            return true;
        }
        let is_for_text = endpoint.generates() || endpoint.counts();
        able.contains(if is_for_text { Capability::Completion } else { Capability::Embedding })
            || able == Capabilities::default()
    }
}

/// The known facts about each model of a scope.
pub(crate) fn of_scope(api: &Api, scope: &Scope) -> BTreeMap<ModelName, Details> {
    let workers = api.scheduler().status().workers;
    of_workers(workers.iter().filter(|worker| worker.scope == *scope && !worker.draining))
}

/// The known facts about a model, or about the targets of an alias. `known`: the facts of the whole scope.
pub(crate) fn of(
    api: &Api,
    scope: &RequestScope,
    known: &BTreeMap<ModelName, Details>,
    name: &ModelName,
) -> Details {
    let aliases = api.aliases();
    let Some(alias) = aliases.get(name).filter(|_| scope.room().is_none()) else {
        return known.get(name).cloned().unwrap_or_default();
    };
    let targets = alias.targets.iter().map(|target| known_as(api, scope.scope(), target));
    let served = targets.filter_map(|target| known.get(&target).cloned());
    served.reduce(Details::or).unwrap_or_default()
}

fn of_workers<'a>(workers: impl Iterator<Item = &'a WorkerStatus>) -> BTreeMap<ModelName, Details> {
    let mut known: BTreeMap<ModelName, Details> = BTreeMap::new();
    for worker in workers {
        for model in worker.models.iter() {
            let facts = worker.model_facts.get(model.as_str()).cloned().unwrap_or_default();
            let machines = BTreeSet::new();
            let here = Details { facts, endpoints: worker.endpoints, machines };
            let details = match known.get_mut(model) {
                Some(before) => {
                    *before = std::mem::take(before).or(here);
                    before
                }
                None => known.entry(model.clone()).or_insert(here),
            };
            details.machines.insert(worker.name.clone());
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use base::{Continuation, LoadState};

    use super::*;

    fn details(context: Option<u64>, load: LoadState, machine: &str) -> Details {
        let facts =
            ModelFacts { context_tokens: context, load: Some(load), ..ModelFacts::default() };
        let endpoints = Endpoints::only(Endpoint::ChatCompletions);
        Details { facts, endpoints, machines: [machine.to_owned()].into() }
    }

    #[test]
    fn of_several_machines_the_safe_context_and_the_best_state_are_told() {
        let one = details(Some(8_192), LoadState::Unloaded, "a");
        let all = one.or(details(Some(4_096), LoadState::Loaded, "b")).or(details(
            None,
            LoadState::Unloaded,
            "a",
        ));
        assert_eq!(
            (all.facts.context_tokens, all.facts.load),
            (Some(4_096), Some(LoadState::Loaded))
        );
        assert_eq!(all.machines.len(), 2);
    }

    #[test]
    fn several_machines_go_on_with_answers_in_the_way_that_all_have() {
        let how = |continuation| {
            let mut details = details(None, LoadState::Loaded, "a");
            details.facts.continuation = continuation;
            details
        };
        let (last, flagged) = (Some(Continuation::LastMessage), Some(Continuation::FinalMessage));
        for (one, other, both) in [(last, last, last), (last, flagged, None), (None, last, None)] {
            assert_eq!(how(one).or(how(other)).facts.continuation, both);
        }
    }

    #[test]
    fn the_paths_are_those_that_lead_to_the_model() {
        let mut chat = details(None, LoadState::Loaded, "a");
        let generating = chat.paths();
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions"] {
            assert!(generating.contains(&path), "{generating:?}");
        }
        assert!(!generating.contains(&"/v1/embeddings"));
        chat.endpoints = Endpoints::ASSUMED;
        chat.facts.capabilities = Some(Capabilities::default().with(Capability::Embedding));
        let own = ["/v1/embeddings", "/api/embed", "/api/embeddings"];
        let geminis = ["/v1beta/models:embedContent", "/v1beta/models:batchEmbedContents"];
        assert_eq!(chat.paths(), [&own[..], &geminis].concat());
        chat.facts.capabilities = Some(Capabilities::default().with(Capability::Completion));
        assert!(!chat.paths().contains(&"/api/embed"), "{:?}", chat.paths());
    }
}
