//! Refusals of backends that load a model and will answer soon.

use super::Failure;

/// The longest refusal that may say so, in bytes.
const LONGEST: u64 = 16 * 1024;

/// The message of Ollama while its runner reads the model.
const OLLAMA: &str = "llm server loading model";

/// Whether an answer of this status, with a body of this many announced bytes, may turn out to say that
/// the backend loads a model. A body without an announced length may never end, so it is not waited for.
pub fn may_be_loading(status: u16, length: Option<u64>) -> bool {
    matches!(status, 500 | 503) && length.is_some_and(|length| length <= LONGEST)
}

/// Whether a complete answer says that the backend is loading a model, in the way of llama.cpp,
/// Ollama and similar servers. An answer that says that loading has failed does not count.
pub fn is_loading(status: u16, body: &[u8]) -> bool {
    if !may_be_loading(status, Some(body.len() as u64)) {
        return false;
    }
    let words = Failure::read(body).message.to_lowercase();
    let failed = ["error loading", "fail", "unable"].iter().any(|word| words.contains(word));
    match status {
        503 => words.contains("loading") && !failed,
        _ => words.contains(OLLAMA) && !failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_that_load_are_told_from_those_that_cannot() {
        let loading = [
            (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#),
            (500, r#"{"error":"unexpected server status: llm server loading model"}"#),
            (503, r#"{"error":"Model m is currently loading","estimated_time":20.0}"#),
            (503, r#"{"detail":"the model is still loading"}"#),
            (503, "loading model"),
        ];
        for (status, body) in loading {
            assert!(is_loading(status, body.as_bytes()), "{status} {body}");
        }
        let others = [
            (
                503,
                r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#,
            ),
            (503, r#"{"error":{"message":"error loading model: out of memory"}}"#),
            (500, r#"{"error":"llama runner process has terminated: error loading model"}"#),
            (500, r#"{"error":{"message":"Loading model"}}"#),
            (200, r#"{"error":{"message":"Loading model"}}"#),
            (503, ""),
        ];
        for (status, body) in others {
            assert!(!is_loading(status, body.as_bytes()), "{status} {body}");
        }
        let long = format!("loading {}", "x".repeat(16 * 1024));
        assert!(!is_loading(503, long.as_bytes()));
    }
}
