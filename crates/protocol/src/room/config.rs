//! Generation parameters: those of a request, and the defaults of rooms and participants.

use serde::{Deserialize, Serialize};

use super::{
    invalid::Invalid,
    limits::{self, MAX_STOP, MAX_STOPS, Unfit, at_most, range},
};

/// Parameters of generation (the spec's `GenerationConfig`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GenerationConfig {
    /// 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of an answer; at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Texts that end an answer: at most 16, of 1 to 256 bytes each.
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

/// Parameters of generation, and instructions for the model: the defaults of a room or of a
/// participant. Never shown whole: others see a [`PublicConfig`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawConfig")]
pub struct RuntimeConfig {
    /// The parameters.
    #[serde(flatten)]
    pub generation: GenerationConfig,
    /// The instructions for the model; trimmed, not empty, at most 16 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// A [`RuntimeConfig`] on the wire. Flat, so that an error names the field.
#[derive(Deserialize)]
struct RawConfig {
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u64>,
    stop: Option<Vec<String>>,
    frequency_penalty: Option<f64>,
    presence_penalty: Option<f64>,
    seed: Option<i64>,
    instructions: Option<String>,
}

impl From<RawConfig> for RuntimeConfig {
    fn from(written: RawConfig) -> Self {
        let RawConfig { temperature, top_p, max_tokens, stop, seed, .. } = written;
        let RawConfig { frequency_penalty, presence_penalty, instructions, .. } = written;
        Self {
            generation: GenerationConfig {
                temperature,
                top_p,
                max_tokens,
                stop,
                frequency_penalty,
                presence_penalty,
                seed,
            },
            instructions: instructions
                .map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty()),
        }
    }
}

/// The public view of a [`RuntimeConfig`]: whether there are instructions, but not their text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PublicConfig {
    /// The parameters.
    #[serde(flatten)]
    pub generation: GenerationConfig,
    /// Whether the model gets instructions first.
    #[serde(rename = "hasInstructions", default)]
    pub has_instructions: bool,
}

impl GenerationConfig {
    /// Whether each parameter is in its range.
    ///
    /// # Errors
    /// [`Invalid`], with the fields that are not.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut invalid = Invalid::default();
        self.check_at("", &mut invalid);
        invalid.or(())
    }

    /// The same, where it is part of something. `place` is its path with a dot at the end.
    pub(super) fn check_at(&self, place: &str, invalid: &mut Invalid) {
        let numbers = [
            ("temperature", self.temperature, 0.0, 2.0),
            ("top_p", self.top_p, 0.0, 1.0),
            ("frequency_penalty", self.frequency_penalty, -2.0, 2.0),
            ("presence_penalty", self.presence_penalty, -2.0, 2.0),
        ];
        for (name, number, least, most) in numbers {
            let in_range = number.map_or(Ok(()), |number| range(number, least, most));
            invalid.hold(&format!("{place}{name}"), in_range);
        }
        if self.max_tokens == Some(0) {
            invalid.add(&format!("{place}max_tokens"), "must be at least 1");
        }
        let stop = self.stop.as_deref().unwrap_or_default();
        invalid.hold(&format!("{place}stop"), check_stop(stop));
    }
}

fn check_stop(stop: &[String]) -> Result<(), Unfit> {
    if stop.len() > MAX_STOPS {
        return Err(Unfit::TooMany(MAX_STOPS));
    }
    let fit = |text: &String| {
        if text.is_empty() { Err(Unfit::Empty) } else { at_most(text, MAX_STOP) }
    };
    stop.iter().try_for_each(fit)
}

impl RuntimeConfig {
    /// Whether each parameter is in its range, and the instructions are no longer than they may be.
    ///
    /// # Errors
    /// [`Invalid`], with the fields that are not.
    pub fn check(&self) -> Result<(), Invalid> {
        let mut invalid = Invalid::default();
        self.check_at("", &mut invalid);
        invalid.or(())
    }

    /// The same, where it is part of something. `place` is its path with a dot at the end.
    pub(super) fn check_at(&self, place: &str, invalid: &mut Invalid) {
        self.generation.check_at(place, invalid);
        let instructions = self.instructions.as_deref().unwrap_or_default();
        invalid.hold(&format!("{place}instructions"), limits::instructions(instructions));
    }

    /// As others see it.
    pub fn public(&self) -> PublicConfig {
        let has_instructions = self.instructions.is_some();
        PublicConfig { generation: self.generation.clone(), has_instructions }
    }

    /// Whether it sets nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This, completed with the other's values.
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
