//! What is known of a model beside its name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a backend says of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// How many tokens a question and its answer may have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How much memory the model takes while it is loaded, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

/// What is known of models, by name. A model of which nothing is known is left out.
pub type FactsByModel = BTreeMap<String, ModelFacts>;

impl ModelFacts {
    /// Whether nothing is known.
    pub const fn is_empty(&self) -> bool {
        self.context_tokens.is_none() && self.memory_bytes.is_none()
    }

    /// These facts, and those of the other where these have none.
    pub const fn or(self, other: Self) -> Self {
        Self {
            context_tokens: match self.context_tokens {
                None => other.context_tokens,
                known => known,
            },
            memory_bytes: match self.memory_bytes {
                None => other.memory_bytes,
                known => known,
            },
        }
    }
}
