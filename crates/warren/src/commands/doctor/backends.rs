//! The model servers of this machine, and those that the settings name.

use worker::Examined;

use super::finding::Finding;

/// A model server.
#[derive(Debug, Clone)]
pub(super) struct Backend {
    /// The program that usually listens there; `None` for a server that the settings name.
    pub(super) name: Option<String>,
    pub(super) url: String,
    /// The findings, or why it does not answer.
    pub(super) answer: Result<Examined, String>,
}

const CHECK: &str = "model server";

/// A finding for each model server, or one that there is none.
pub(super) fn all(backends: &[Backend]) -> Vec<Finding> {
    if backends.is_empty() {
        let advice = "start Ollama, llama.cpp, vLLM or LM Studio, or name one with --backend URL; a server whose \
                      workers are elsewhere needs none";
        return vec![Finding::note(CHECK, "none was found at the usual ports", advice)];
    }
    backends
        .iter()
        .flat_map(|backend| std::iter::once(one(backend)).chain(advice(backend)))
        .collect()
}

fn one(backend: &Backend) -> Finding {
    let name = backend.name.as_ref().map(|name| format!("{name} at ")).unwrap_or_default();
    let place = format!("{name}{}", backend.url);
    match &backend.answer {
        Err(error) => Finding::fault(
            CHECK,
            format!("{place}: {error}"),
            "is it up, and is its address right?",
        ),
        Ok(Examined { models, .. }) if models.is_empty() => {
            Finding::note(CHECK, format!("{place} has no model"), "pull or load one there")
        }
        Ok(Examined { models, endpoints, .. }) => {
            Finding::ok(CHECK, format!("{place}: {}; {endpoints}", some_of(models)))
        }
    }
}

/// The most pieces of advice on one model server. Further ones appear once these are followed.
const MAX_ADVICE: usize = 3;

/// A note for each piece of advice on a model server.
fn advice(backend: &Backend) -> Vec<Finding> {
    let advice = backend.answer.iter().flat_map(|examined| &examined.advice).take(MAX_ADVICE);
    let note = |words: &String| {
        // The fault follows the model's name; the rest is the advice.
        let (found, advice) = words.rsplit_once(": ").unwrap_or((words, ""));
        Finding::note(CHECK, format!("{}: {found}", backend.url), advice)
    };
    advice.map(note).collect()
}

fn some_of(models: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = models.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match models.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use base::{Endpoint, Endpoints};

    use super::*;
    use crate::commands::doctor::finding::State;

    fn backend(answer: Result<Examined, String>) -> Backend {
        Backend { name: Some("Ollama".to_owned()), url: "http://h:1".to_owned(), answer }
    }

    fn with(models: &[&str], advice: &[&str]) -> Backend {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let endpoints = Endpoints::only(Endpoint::ChatCompletions);
        backend(Ok(Examined { models: texts(models), endpoints, advice: texts(advice) }))
    }

    #[test]
    fn a_model_server_is_shown_with_its_models_and_endpoints() {
        let well = one(&with(&["a", "b", "c", "d"], &[]));
        assert_eq!(well.found, "Ollama at http://h:1: a, b, c and 1 more; /v1/chat/completions");
        assert_eq!(one(&with(&[], &[])).state, State::Note);
        assert_eq!(one(&backend(Err("refused".to_owned()))).state, State::Fault);
        assert_eq!(all(&[])[0].state, State::Note);
    }

    #[test]
    fn contexts_that_surprise_are_noted_within_a_bound() {
        let words = "qwen3:8b: Ollama runs it with a context of 4096 tokens: set a longer one";
        let findings = all(&[with(&["a"], &[words; 9])]);
        assert_eq!((findings.len(), findings[0].state), (1 + MAX_ADVICE, State::Ok));
        let note = &findings[1];
        assert_eq!(
            note.found,
            "http://h:1: qwen3:8b: Ollama runs it with a context of 4096 tokens"
        );
        assert_eq!((note.state, note.advice.as_deref()), (State::Note, Some("set a longer one")));
    }
}
