//! The programs that serve models, and the arguments that give each its model and its port.
//!
//! Only programs whose flags their own documentation names are known here; any other needs a template of
//! its arguments.

use std::path::Path;

use base::{Capabilities, Capability, Endpoint, Endpoints};

/// A program whose flags are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownProgram {
    /// llama.cpp's server.
    LlamaServer,
    /// vLLM.
    Vllm,
    /// The server of Apple's MLX.
    MlxLm,
}

impl KnownProgram {
    /// The program of a file name, such as `/opt/llama.cpp/llama-server`.
    pub(crate) fn of(program: &Path) -> Option<Self> {
        match program.file_name()?.to_str()? {
            "llama-server" => Some(Self::LlamaServer),
            "vllm" => Some(Self::Vllm),
            "mlx_lm.server" => Some(Self::MlxLm),
            _ => None,
        }
    }

    /// Whether it serves GGUF files. Others serve folders of weights, each one model.
    pub(crate) fn reads_gguf(self) -> bool {
        matches!(self, Self::LlamaServer)
    }

    /// Its arguments, with placeholders for values that are known at the start only. A placeholder without a
    /// value is left out together with its flag.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            // Older releases read the templates of models, and so their tools, only with `--jinja`.
            Self::LlamaServer => &[
                "--model",
                "{model}",
                "--alias",
                "{name}",
                "--mmproj",
                "{mmproj}",
                "--ctx-size",
                "{context}",
                "--parallel",
                "{parallel}",
                "--threads",
                "{threads}",
                "--jinja",
                "--host",
                "{host}",
                "--port",
                "{port}",
            ],
            Self::Vllm => &[
                "serve",
                "{model}",
                "--served-model-name",
                "{name}",
                "--max-model-len",
                "{context}",
                "--host",
                "{host}",
                "--port",
                "{port}",
            ],
            Self::MlxLm => &["--model", "{model}", "--host", "{host}", "--port", "{port}"],
        }
    }

    /// Arguments that only models with these abilities need.
    pub(crate) fn arguments_for(self, abilities: Capabilities) -> Vec<String> {
        let only_embeds = abilities.contains(Capability::Embedding)
            && !abilities.contains(Capability::Completion);
        match self {
            Self::LlamaServer if only_embeds => vec!["--embeddings".to_owned()],
            _ => Vec::new(),
        }
    }

    /// The endpoints that all its releases serve; others are translated. A program could be asked for them only
    /// once it runs, and the first request comes before that.
    pub(crate) fn endpoints(self) -> Endpoints {
        let text = Endpoints::only(Endpoint::ChatCompletions).with(Endpoint::Completions);
        match self {
            Self::LlamaServer | Self::Vllm => text.with(Endpoint::Embeddings),
            Self::MlxLm => text,
        }
    }

    /// The context for its command line, where each request is to have room for `each` tokens. llama.cpp divides the
    /// context among the requests that it takes at once.
    pub(crate) fn whole_context(self, each: u64, parallel: Option<u32>) -> u64 {
        match self {
            Self::LlamaServer => each.saturating_mul(parallel.unwrap_or(1).into()),
            Self::Vllm | Self::MlxLm => each,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_file_names() {
        let of = |path: &str| KnownProgram::of(Path::new(path));
        assert_eq!(of("/opt/llama.cpp/llama-server"), Some(KnownProgram::LlamaServer));
        assert_eq!(of("vllm"), Some(KnownProgram::Vllm));
        assert_eq!(of("/v/bin/mlx_lm.server"), Some(KnownProgram::MlxLm));
        assert_eq!(of("/usr/bin/other"), None);
        assert_eq!(of("/"), None);
    }

    #[test]
    fn each_program_is_told_model_host_and_port() {
        for known in [KnownProgram::LlamaServer, KnownProgram::Vllm, KnownProgram::MlxLm] {
            let line = known.arguments().join(" ");
            for part in ["{model}", "--host {host}", "--port {port}"] {
                assert!(line.contains(part), "{line}");
            }
        }
    }

    #[test]
    fn a_model_that_only_embeds_is_served_for_that() {
        let embeds = Capabilities::default().with(Capability::Embedding);
        assert_eq!(KnownProgram::LlamaServer.arguments_for(embeds), ["--embeddings"]);
        let both = embeds.with(Capability::Completion);
        assert!(KnownProgram::LlamaServer.arguments_for(both).is_empty());
        assert!(KnownProgram::Vllm.arguments_for(embeds).is_empty());
    }

    #[test]
    fn llama_cpp_is_told_the_context_of_all_requests_together() {
        assert_eq!(KnownProgram::LlamaServer.whole_context(4096, Some(4)), 16_384);
        assert_eq!(KnownProgram::LlamaServer.whole_context(4096, None), 4096);
        assert_eq!(KnownProgram::Vllm.whole_context(4096, Some(4)), 4096);
    }
}
