//! The purpose of a model, guessed from its name. No API reports it in a way that all backends share.

/// Parts of names of models that embed, rank or judge.
const PARTS: [&str; 4] = ["embed", "minilm", "rerank", "shield"];

/// Words of the names of models that answer no questions.
const WORDS: [&str; 44] = [
    // Embeddings and ranking.
    "bge",
    "e5",
    "gte",
    "bert",
    "colbert",
    "splade",
    "voyage",
    "sbert",
    "labse",
    "mpnet",
    "clip",
    "siglip",
    "emb",
    // Speech and music.
    "whisper",
    "transcribe",
    "asr",
    "stt",
    "tts",
    "xtts",
    "kokoro",
    "piper",
    "bark",
    "parakeet",
    "canary",
    "moonshine",
    "musicgen",
    "wav2vec2",
    "speecht5",
    // Pictures and films.
    "diffusion",
    "sd",
    "sdxl",
    "sd3",
    "flux",
    "dall",
    "dalle",
    "imagen",
    "image",
    "sora",
    "veo",
    "upscaler",
    // Parts of other models, and judges of content.
    "vae",
    "mmproj",
    "moderation",
    "guard",
];

/// Whether a model of this name probably answers questions: its name does not look like one of models that
/// embed, rank, transcribe, speak, paint or judge. Use it only to choose a model where nobody has named
/// one: a name proves nothing.
pub fn is_for_chat(model: &str) -> bool {
    let name = model.to_ascii_lowercase();
    // The name itself, without its publisher.
    let own = name.rsplit('/').next().unwrap_or_default();
    let mut words = own.split(|c: char| !c.is_ascii_alphanumeric());
    // `guard3` is a guard.
    let unnumbered = |word: &str| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let is_other = |word: &str| WORDS.contains(&word) || WORDS.contains(&&*unnumbered(word));
    !PARTS.iter().any(|part| own.contains(part)) && !words.any(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_a_model_is_for() {
        for other in [
            "nomic-embed-text:latest",
            "mxbai-embed-large",
            "text-embedding-3-small",
            "Qwen/Qwen3-Embedding-8B-GGUF",
            "all-minilm:22m",
            "bge-m3",
            "intfloat/multilingual-e5-large",
            "gte-Qwen2-7B-instruct",
            "BAAI/bge-reranker-v2-m3",
            "jina-reranker-v2",
            "jina-clip-v2",
            "whisper-1",
            "openai/whisper-large-v3",
            "gpt-4o-transcribe",
            "gpt-4o-mini-tts",
            "stable-diffusion-xl",
            "sd-turbo",
            "flux.1-schnell",
            "dall-e-3",
            "gpt-image-1",
            "omni-moderation-latest",
            "llama-guard3:8b",
            "mmproj-model-f16",
        ] {
            assert!(!is_for_chat(other), "{other}");
        }
        for chat in [
            "qwen3:8b",
            "llama3.2-vision",
            "gpt-4o",
            "claude-sonnet-4-5",
            "gemma3n:e4b",
            "phi-4",
            "mistral-small",
            "deepseek-r1:7b",
            "sentence-transformers/some-chat",
            "embed-publisher/qwen3",
            "demo",
            "",
        ] {
            assert!(is_for_chat(chat), "{chat}");
        }
    }
}
