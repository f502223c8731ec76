//! The capabilities of a model, by its head.

use base::{Capabilities, Capability};

use super::values::{TEMPLATE, Values};

/// Words of a template by which a model is told to think, or its thoughts are told from its answer.
const THOUGHTS: [&str; 5] =
    ["enable_thinking", "<think>", "reasoning_content", "thinking_budget", "<|channel|>"];

/// The number of the pooling that makes a rank of two texts, and no vector.
const RANK: u64 = 4;

/// Without what a projector adds.
pub(super) fn of(values: &Values) -> Capabilities {
    let has = |key: &str| values.number(key) == Some(1);
    let pooling = values.own_number("pooling_type").filter(|pooling| *pooling > 0);
    let makes_text = pooling.is_none() && values.own_number("attention.causal") != Some(0);
    let makes_vectors = !makes_text && pooling != Some(RANK);
    let template = values.text(TEMPLATE).filter(|_| makes_text).unwrap_or_default();
    let can = [
        (makes_text && values.has("general.architecture"), Capability::Completion),
        (template.contains("tools"), Capability::Tools),
        (THOUGHTS.iter().any(|word| template.contains(word)), Capability::Thinking),
        (makes_text && fills_gaps(values), Capability::Insert),
        (makes_vectors, Capability::Embedding),
        (has("clip.has_vision_encoder"), Capability::Vision),
        (has("clip.has_audio_encoder"), Capability::Audio),
    ];
    can.into_iter().filter_map(|(can, capability)| can.then_some(capability)).collect()
}

/// Whether it has tokens for the text before a gap and after it.
fn fills_gaps(values: &Values) -> bool {
    values.has("tokenizer.ggml.fim_pre_token_id")
        || (values.has("tokenizer.ggml.prefix_token_id")
            && values.has("tokenizer.ggml.suffix_token_id"))
}
