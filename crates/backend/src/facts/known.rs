//! The known facts about the models of one server.

use std::collections::{HashMap, HashSet};

use base::{Endpoints, FactsByModel, ModelFacts, ModelName};

use super::{ServerKind, ollama::Shown};
use crate::config::Continues;

/// The reports of one server so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Which program it is, once that is known.
    pub(crate) kind: Option<ServerKind>,
    /// Whether it could not be reached since then, so that another program may answer at its
    /// address now.
    pub(crate) is_stale: bool,
    /// The names of its list.
    pub(crate) names: Vec<String>,
    /// The facts in its list.
    pub(crate) listed: FactsByModel,
    /// The endpoints without a translation that its list names; only a Warren's list does.
    pub(crate) untranslated: Option<Endpoints>,
    /// The facts from a closer look.
    pub(crate) looked: FactsByModel,
    /// The answers of an Ollama's `/api/show`, by the digests of the models. They never change.
    pub(crate) shown: HashMap<String, Shown>,
    /// The models about whose contexts advice was logged; `None` stands for the server itself.
    pub(crate) advised: HashSet<Option<String>>,
}

impl Known {
    /// All facts, by the server's own names. `continues`: how it continues answers, if that is
    /// configured.
    pub(crate) fn facts(&self, continues: Option<Continues>) -> FactsByModel {
        let mut facts = self.looked.clone();
        for (name, listed) in &self.listed {
            let known = facts.entry(name.clone()).or_default();
            *known = std::mem::take(known).or(listed.clone());
        }
        if let Some(set) = continues {
            for name in &self.names {
                facts.entry(name.clone()).or_default().continuation = set.how();
            }
        }
        facts.retain(|_, facts| !facts.is_empty());
        facts
    }

    /// Which program it is, and whether that is out of date, see [`Self::is_stale`].
    pub(crate) fn kind_as_known(&self) -> (Option<ServerKind>, bool) {
        (self.kind, self.is_stale)
    }

    /// The facts from a closer look at a model. `name` may lack the tag `latest`.
    pub(crate) fn of_model(&self, name: &str) -> Option<&ModelFacts> {
        let other = || ModelName::from(name).with_or_without_latest();
        self.looked.get(name).or_else(|| self.looked.get(other()?.as_str()))
    }

    /// Takes the facts from a closer look. A model that is no longer loaded keeps the memory and
    /// the context that it had.
    pub(crate) fn look(&mut self, seen: FactsByModel) {
        let kept = |(name, facts): (String, ModelFacts)| {
            let before = self.looked.get(&name).cloned().unwrap_or_default();
            let (memory_bytes, context_tokens) = (before.memory_bytes, before.context_tokens);
            let before = ModelFacts { memory_bytes, context_tokens, ..ModelFacts::default() };
            (name, facts.or(before))
        };
        self.looked = seen.into_iter().map(kept).collect();
    }
}

#[cfg(test)]
mod tests {
    use base::{Continuation, LoadState};

    use super::*;

    fn facts(memory: Option<u64>, load: LoadState) -> FactsByModel {
        let facts = ModelFacts { memory_bytes: memory, load: Some(load), ..ModelFacts::default() };
        [("m".to_owned(), facts)].into()
    }

    #[test]
    fn a_model_that_was_loaded_keeps_its_memory_and_its_list_fills_in() {
        let mut known = Known::default();
        known.look(facts(Some(7), LoadState::Loaded));
        known.look(facts(None, LoadState::Unloaded));
        let family = ModelFacts { family: Some("f".into()), ..ModelFacts::default() };
        known.listed = [("m".to_owned(), family), ("n".to_owned(), ModelFacts::default())].into();
        let all = known.facts(None);
        assert_eq!(all.len(), 1, "nothing is known of n");
        let known = &all["m"];
        assert_eq!((known.memory_bytes, known.load), (Some(7), Some(LoadState::Unloaded)));
        assert_eq!(known.family.as_deref(), Some("f"));
    }

    #[test]
    fn what_is_set_about_continuing_comes_before_what_was_learned() {
        let last = Some(Continuation::LastMessage);
        let told = ModelFacts { continuation: last, ..ModelFacts::default() };
        let names = vec!["m".to_owned(), "n".to_owned()];
        let known = Known { names, listed: [("m".to_owned(), told)].into(), ..Known::default() };
        let how = |set: Option<Continues>| {
            let facts = known.facts(set);
            ["m", "n"].map(|name| facts.get(name).and_then(|facts| facts.continuation))
        };
        assert_eq!(how(None), [last, None]);
        assert_eq!(how(Some(Continues::No)), [None, None]);
        assert_eq!(how(Some(Continues::FinalMessage)), [Some(Continuation::FinalMessage); 2]);
    }
}
