//! The model servers of this machine, and those that the settings name.

use super::finding::Finding;

/// A model server.
#[derive(Debug, Clone)]
pub(super) struct Backend {
    /// What usually listens there, or nothing for one that the settings name.
    pub(super) name: Option<String>,
    pub(super) url: String,
    /// Its models and the paths of its endpoints, or why it does not answer.
    pub(super) answer: Result<(Vec<String>, Vec<&'static str>), String>,
}

const CHECK: &str = "model server";

/// A finding for each, or one that there is none.
pub(super) fn all(backends: &[Backend]) -> Vec<Finding> {
    if backends.is_empty() {
        let advice = "start Ollama, llama.cpp, vLLM or LM Studio, or name one with --backend URL; a server whose \
                      workers are elsewhere needs none";
        return vec![Finding::note(CHECK, "none was found at the usual ports", advice)];
    }
    backends.iter().map(one).collect()
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
        Ok((models, _)) if models.is_empty() => {
            Finding::note(CHECK, format!("{place} has no model"), "pull or load one there")
        }
        Ok((models, endpoints)) => {
            Finding::ok(CHECK, format!("{place}: {}; {}", some_of(models), endpoints.join(", ")))
        }
    }
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
    use super::*;
    use crate::commands::doctor::finding::State;

    fn with(answer: Result<(Vec<String>, Vec<&'static str>), String>) -> Finding {
        one(&Backend { name: Some("Ollama".to_owned()), url: "http://h:1".to_owned(), answer })
    }

    #[test]
    fn a_model_server_is_shown_with_its_models_and_endpoints() {
        let models = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let well = with(Ok((models, vec!["/v1/chat/completions"])));
        assert_eq!(well.found, "Ollama at http://h:1: a, b, c and 1 more; /v1/chat/completions");
        assert_eq!(with(Ok((Vec::new(), Vec::new()))).state, State::Note);
        assert_eq!(with(Err("refused".to_owned())).state, State::Fault);
        assert_eq!(all(&[])[0].state, State::Note);
    }
}
