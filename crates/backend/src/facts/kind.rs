//! Which program a model server is, and the abilities that follow from the versions of vLLM and SGLang.

use base::Continuation;
use serde_json::Value;

/// A program that serves models. All that Warren knows how to ask for more than its list have a
/// variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// Ollama.
    Ollama,
    /// llama.cpp's server.
    LlamaCpp,
    /// LM Studio.
    LmStudio,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// Any other.
    Other,
}

impl ServerKind {
    /// The program that writes this owner into its list of models; `None` if several programs do, or
    /// none.
    pub(crate) fn of_owner(owner: &str) -> Option<Self> {
        match owner {
            "library" => Some(Self::Ollama),
            "llamacpp" => Some(Self::LlamaCpp),
            "organization_owner" => Some(Self::LmStudio),
            "vllm" => Some(Self::Vllm),
            "sglang" => Some(Self::Sglang),
            "warren" | "openai" | "system" => Some(Self::Other),
            _ => None,
        }
    }
}

/// How a server of this kind continues answers, by the version that it reports; `None` if it cannot, or does
/// not tell. An older version ignores the request to continue and begins the answer again.
pub(super) fn continuation(kind: ServerKind, body: &[u8]) -> Option<Continuation> {
    let since = match kind {
        ServerKind::Vllm => [0, 6, 4],
        ServerKind::Sglang => [0, 4, 5],
        _ => return None,
    };
    let report: Value = serde_json::from_slice(body).ok()?;
    let version = numbers(report["version"].as_str()?)?;
    (version >= since).then_some(Continuation::FinalMessage)
}

/// The first three numbers of a version: `0.11.0rc1.dev7+g12ab`.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.trim_start_matches('v').split('.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse::<u32>().ok()
    });
    let mut next = || parts.next().flatten();
    Some([next()?, next()?, next().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_continued_since_a_version() {
        let says = |kind, version: &str| {
            continuation(kind, format!(r#"{{"version":"{version}"}}"#).as_bytes()).is_some()
        };
        for (kind, version, continues) in [
            (ServerKind::Vllm, "0.6.4", true),
            (ServerKind::Vllm, "0.6.3.post1", false),
            (ServerKind::Vllm, "0.11.0rc1.dev7+g12ab", true),
            (ServerKind::Vllm, "v1.0", true),
            (ServerKind::Vllm, "dev", false),
            (ServerKind::Sglang, "0.4.4.post3", false),
            (ServerKind::Sglang, "0.5.23", true),
            (ServerKind::Ollama, "9.9.9", false),
        ] {
            assert_eq!(says(kind, version), continues, "{kind:?} {version}");
        }
        assert_eq!(continuation(ServerKind::Vllm, b"{}"), None);
        assert_eq!(continuation(ServerKind::Vllm, b"<html>"), None);
    }
}
