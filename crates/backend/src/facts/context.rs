//! The length of a model's context: what is asked for, what is in force, and advice about it.

use base::ModelFacts;

use super::ServerKind;
use crate::http::HttpBackend;

/// A context that is shorter than this is too short for the prompts of agents.
const SHORT: u64 = 16_384;

impl HttpBackend {
    /// The length of the context to ask for with a request for this model, in tokens. `model`: the server's name
    /// for it. `None` if no context is configured, or if the server cannot be asked for one.
    pub fn num_ctx(&self, model: &str) -> Option<u64> {
        let wanted = self.context?;
        let known = self.known();
        let longest = known.of_model(model).and_then(|facts| facts.max_context_tokens);
        let is_ollama = known.kind == Some(ServerKind::Ollama);
        is_ollama.then(|| longest.map_or(wanted, |longest| wanted.min(longest)))
    }

    /// Whether it must be asked in Ollama's own API, because a context is configured.
    pub(crate) async fn is_asked_natively(&self) -> bool {
        self.context.is_some() && self.kind().await == Some(ServerKind::Ollama)
    }

    /// Advice about the contexts of its models. `None` in place of a model: the advice is about the
    /// server.
    pub fn advice(&self) -> Vec<(Option<String>, String)> {
        let known = self.known();
        match (known.kind, self.context) {
            (Some(ServerKind::Ollama), wanted) => {
                let words = |(model, facts): (&String, _)| {
                    Some((Some(model.clone()), of_model(facts, wanted)?))
                };
                known.looked.iter().filter_map(words).collect()
            }
            (Some(_), Some(_)) => vec![(None, NO_OLLAMA.to_owned())],
            _ => Vec::new(),
        }
    }

    /// Logs each new advice once.
    pub(crate) fn log_advice(&self) {
        let advice = self.advice();
        let mut known = self.known();
        for (model, words) in &advice {
            if known.advised.insert(model.clone()) {
                let model = model.as_deref().unwrap_or_default();
                tracing::warn!(backend = self.label(), model, "{words}");
            }
        }
        known.advised.retain(|model| advice.iter().any(|(advised, _)| advised == model));
    }
}

const NO_OLLAMA: &str = "`context` cannot be set at this backend, as it is no Ollama: start the model server with its \
                         own option, such as -c of llama.cpp";

/// Advice about a model's context. `wanted`: the configured context.
fn of_model(facts: &ModelFacts, wanted: Option<u64>) -> Option<String> {
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
        let short = of_model(&facts(Some(4_096), 131_072), None).unwrap();
        assert!(short.contains("4096 tokens") && short.contains("context = 32768"), "{short}");
        let high = of_model(&facts(None, 8_192), Some(32_768)).unwrap();
        assert!(high.contains("8192 at most"), "{high}");
        for fine in [
            (facts(Some(4_096), 4_096), None),
            (facts(Some(SHORT), 131_072), None),
            (facts(None, 131_072), None),
            (facts(Some(4_096), 131_072), Some(32_768)),
            (ModelFacts::default(), Some(32_768)),
        ] {
            assert_eq!(of_model(&fine.0, fine.1), None, "{fine:?}");
        }
    }
}
