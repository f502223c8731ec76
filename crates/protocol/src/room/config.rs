//! How to generate: what a request may ask for, and the defaults of rooms and participants.

use serde::{Deserialize, Serialize};

/// Parameters of generation (the spec's `GenerationConfig`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GenerationConfig {
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// −2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// −2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Makes answers repeatable, where the backend can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
}

/// Parameters of generation, and what the model is told first: the defaults of a room or of a
/// participant. Never shown whole: others see a [`PublicConfig`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RuntimeConfig {
    /// The parameters.
    #[serde(flatten)]
    pub generation: GenerationConfig,
    /// What the model is told first; trimmed, not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// A [`RuntimeConfig`] as others see it: whether there are instructions, not which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicConfig {
    /// The parameters.
    #[serde(flatten)]
    pub generation: GenerationConfig,
    /// Whether the model is told something first.
    #[serde(rename = "hasInstructions", default)]
    pub has_instructions: bool,
}

impl RuntimeConfig {
    /// As others see it.
    pub fn public(&self) -> PublicConfig {
        let has_instructions = self.instructions.is_some();
        PublicConfig { generation: self.generation.clone(), has_instructions }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This, and where it says nothing, the other.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        let (own, other_generation) = (self.generation, &other.generation);
        Self {
            generation: GenerationConfig {
                temperature: own.temperature.or(other_generation.temperature),
                top_p: own.top_p.or(other_generation.top_p),
                max_tokens: own.max_tokens.or(other_generation.max_tokens),
                stop: own.stop.or_else(|| other_generation.stop.clone()),
                frequency_penalty: own.frequency_penalty.or(other_generation.frequency_penalty),
                presence_penalty: own.presence_penalty.or(other_generation.presence_penalty),
                seed: own.seed.or(other_generation.seed),
            },
            instructions: self.instructions.or_else(|| other.instructions.clone()),
        }
    }
}
