//! The facts about a model beside its name.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Continuation, plain};

/// The longest text among the facts of a model, in bytes.
pub const MAX_FACT: usize = 64;

/// The facts that a backend reports of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// How many tokens a question and its answer may have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The longest context that it was made for, in tokens, whatever its backend gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context_tokens: Option<u64>,
    /// How much memory the model takes while it is loaded, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How long its files are together, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// How many parameters it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// How its weights are stored: `Q4_K_M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<Box<str>>,
    /// Its architecture: `qwen3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Box<str>>,
    /// Its capabilities; `None` when they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Whether it is in memory; `None` when its backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadState>,
    /// How long loading it takes, in milliseconds, as far as it was loaded before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<u64>,
    /// When it was last asked, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_ms: Option<u64>,
    /// How its backend goes on with an answer that has begun; `None` when it cannot, or does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
}

/// The known facts about models, by name. A model of which nothing is known is left out.
pub type FactsByModel = BTreeMap<String, ModelFacts>;

impl ModelFacts {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These facts, as they came from a stranger: texts are clipped to [`MAX_FACT`] bytes, and nothing in them
    /// controls a terminal or is invisible. An empty text says nothing.
    #[must_use]
    pub fn cleaned(self) -> Self {
        let clean = |text: Box<str>| {
            let kept = text.floor_char_boundary(MAX_FACT);
            let text = plain::stripped(text[..kept].trim());
            Some(text.into_boxed_str()).filter(|text| !text.is_empty())
        };
        let (quantization, family) =
            (self.quantization.and_then(clean), self.family.and_then(clean));
        Self { quantization, family, ..self }
    }

    /// These facts, and those of the other where these have none.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            context_tokens: self.context_tokens.or(other.context_tokens),
            max_context_tokens: self.max_context_tokens.or(other.max_context_tokens),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            file_bytes: self.file_bytes.or(other.file_bytes),
            parameters: self.parameters.or(other.parameters),
            quantization: self.quantization.or(other.quantization),
            family: self.family.or(other.family),
            capabilities: self.capabilities.or(other.capabilities),
            load: self.load.or(other.load),
            load_ms: self.load_ms.or(other.load_ms),
            last_used_ms: self.last_used_ms.or(other.last_used_ms),
            continuation: self.continuation.or(other.continuation),
        }
    }
}

/// Whether a model is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadState {
    /// It answers at once.
    Loaded,
    /// It is being loaded.
    Loading,
    /// The next request loads it.
    Unloaded,
}

impl fmt::Display for LoadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loaded => "loaded",
            Self::Loading => "loading",
            Self::Unloaded => "unloaded",
        })
    }
}

/// One thing that a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Continues text and answers messages.
    Completion,
    /// Calls tools.
    Tools,
    /// Fills the gap between two texts.
    Insert,
    /// Reads pictures.
    Vision,
    /// Makes vectors of texts.
    Embedding,
    /// Thinks before it answers.
    Thinking,
    /// Reads sound.
    Audio,
}

impl Capability {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::Completion,
        Self::Tools,
        Self::Insert,
        Self::Vision,
        Self::Embedding,
        Self::Thinking,
        Self::Audio,
    ];

    /// Its name, which is Ollama's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Tools => "tools",
            Self::Insert => "insert",
            Self::Vision => "vision",
            Self::Embedding => "embedding",
            Self::Thinking => "thinking",
            Self::Audio => "audio",
        }
    }
}

/// The capabilities of a model. On the wire a list of names; unknown ones are passed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// These and this one.
    #[must_use]
    pub const fn with(self, capability: Capability) -> Self {
        Self(self.0 | 1 << capability as u8)
    }

    /// Whether this one is among them.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u8 != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }

    /// Those with these names.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let of_name = |name| Capability::ALL.into_iter().find(|known| known.name() == name);
        names.into_iter().filter_map(of_name).collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<T: IntoIterator<Item = Capability>>(capabilities: T) -> Self {
        capabilities.into_iter().fold(Self::default(), Self::with)
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Capability::name))
    }
}

impl<'de> Deserialize<'de> for Capabilities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Ok(Self::of_names(names.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_facts_come_before_others() {
        let some =
            ModelFacts { parameters: Some(8), family: Some("a".into()), ..ModelFacts::default() };
        let other =
            ModelFacts { family: Some("b".into()), load_ms: Some(5), ..ModelFacts::default() };
        let all = some.or(other);
        assert_eq!(
            (all.parameters, all.family.as_deref(), all.load_ms),
            (Some(8), Some("a"), Some(5))
        );
        assert!(ModelFacts::default().is_empty() && !all.is_empty());
    }

    #[test]
    fn texts_of_strangers_are_bounded_and_harmless() {
        let said = |text: &str| {
            let facts = ModelFacts { quantization: Some(text.into()), ..ModelFacts::default() };
            facts.cleaned().quantization.map(String::from)
        };
        assert_eq!(said(" Q4_K_M ").as_deref(), Some("Q4_K_M"));
        assert_eq!(said("Q4\u{1b}[2J\u{202e}\u{200b}").as_deref(), Some("Q4[2J"));
        assert_eq!(said(" \n").as_deref(), None);
        let long = said(&"\u{e9}".repeat(MAX_FACT)).unwrap();
        assert_eq!(long, "\u{e9}".repeat(MAX_FACT / 2));
        assert!(said(&format!("x{}", "\u{e9}".repeat(MAX_FACT))).unwrap().len() < MAX_FACT);
    }

    #[test]
    fn capabilities_travel_by_name() {
        for capability in Capability::ALL {
            let only = Capabilities::default().with(capability);
            assert_eq!(Capabilities::of_names([capability.name()]), only);
            assert_eq!(only.iter().collect::<Vec<_>>(), [capability]);
        }
        let read: ModelFacts =
            serde_json::from_str(r#"{"capabilities":["tools","dance","vision"],"load":"loading"}"#)
                .unwrap();
        let able = Capabilities::default().with(Capability::Tools).with(Capability::Vision);
        assert_eq!((read.capabilities, read.load), (Some(able), Some(LoadState::Loading)));
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(written, r#"{"capabilities":["tools","vision"],"load":"loading"}"#);
    }
}
