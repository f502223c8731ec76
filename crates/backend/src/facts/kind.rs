//! Which program a model server is.

/// A program that serves models, as far as more can be learned from it than its list tells.
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
    /// The program that names its models' owners so in its list; `None` where that could be several.
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
