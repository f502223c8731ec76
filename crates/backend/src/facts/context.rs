//! The length of a model's context: what is asked for, what is in force, and what people must know of it.

use base::ModelFacts;

use super::{Known, ServerKind};
use crate::http::HttpBackend;

/// A context that is shorter than this cuts the prompts of agents.
const SHORT: u64 = 16_384;

impl HttpBackend {
    /// How long a context to ask for with a request for this model, by the server's own name: `None` where none is
    /// set, or where the server cannot be asked for one.
    pub fn num_ctx(&self, model: &str) -> Option<u64> {
        let wanted = self.context?;
        let known = self.known();
        let longest = known.of_model(model).and_then(|facts| facts.max_context_tokens);
        let is_ollama = known.kind == Some(ServerKind::Ollama);
        is_ollama.then(|| longest.map_or(wanted, |longest| wanted.min(longest)))
    }

    /// Whether it is asked in its own API for the context that is set.
    pub(crate) async fn is_asked_natively(&self) -> bool {
        let Some(context) = self.context else { return false };
        match self.kind().await {
            Some(ServerKind::Ollama) => true,
            None => false,
            Some(_) => {
                tracing::warn!(
                    backend = self.label(),
                    context,
                    "no context can be set at this backend, as it is no Ollama: start it with its own option, \
                     such as -c of llama.cpp"
                );
                false
            }
        }
    }

    /// Says of each model once what people must know of its context.
    pub(crate) fn tell_of_contexts(&self) {
        let mut known = self.known();
        let Known { looked, told, .. } = &mut *known;
        for (model, facts) in looked.iter() {
            let Some(words) = advice(facts, self.context).filter(|_| !told.contains(model)) else {
                continue;
            };
            told.insert(model.clone());
            tracing::warn!(backend = self.label(), model, "{words}");
        }
        told.retain(|model| looked.contains_key(model));
    }
}

/// What people must know of a model's context. `wanted`: the one that is set.
fn advice(facts: &ModelFacts, wanted: Option<u64>) -> Option<String> {
    let longest = facts.max_context_tokens?;
    match (wanted, facts.context_tokens) {
        (Some(wanted), _) if wanted > longest => Some(format!(
            "its context is set to {wanted} tokens, but the model has {longest} at most: these are asked for"
        )),
        (None, Some(given)) if given < SHORT && given < longest => Some(format!(
            "Ollama runs it with a context of {given} tokens, of the {longest} that it may have, and cuts longer \
             prompts without a word: set a longer one with context = 32768 at [[worker.backends]], or with \
             OLLAMA_CONTEXT_LENGTH where Ollama starts"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_told_of_short_contexts_and_of_impossible_ones() {
        let facts = |given: Option<u64>, longest: u64| ModelFacts {
            context_tokens: given,
            max_context_tokens: Some(longest),
            ..ModelFacts::default()
        };
        let short = advice(&facts(Some(4_096), 131_072), None).unwrap();
        assert!(short.contains("4096 tokens") && short.contains("context = 32768"), "{short}");
        let high = advice(&facts(None, 8_192), Some(32_768)).unwrap();
        assert!(high.contains("8192 at most"), "{high}");
        for fine in [
            (facts(Some(4_096), 4_096), None),
            (facts(Some(SHORT), 131_072), None),
            (facts(None, 131_072), None),
            (facts(Some(4_096), 131_072), Some(32_768)),
            (ModelFacts::default(), Some(32_768)),
        ] {
            assert_eq!(advice(&fine.0, fine.1), None, "{fine:?}");
        }
    }
}
