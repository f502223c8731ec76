//! The values of a head that count here.

use std::collections::BTreeMap;

/// A value that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    /// Also of a flag: 0 or 1.
    Number(u64),
    /// One for each layer.
    Numbers(Vec<u64>),
    /// Of a list that is not looked at: how long it is.
    Length(u64),
}

/// The most values that are kept.
const MAX_VALUES: usize = 256;

/// The longest text that is kept, in bytes; longer ones are cut.
const MAX_TEXT: u64 = 256;
/// The same of the template of chats, which is searched for words.
const MAX_TEMPLATE: u64 = 1 << 20;

/// The template of chats.
pub(super) const TEMPLATE: &str = "tokenizer.chat_template";

/// Whole keys that are kept.
const KEYS: [&str; 14] = [
    "general.architecture",
    "general.name",
    "general.type",
    "general.file_type",
    "adapter.type",
    "split.no",
    "split.count",
    "clip.has_vision_encoder",
    "clip.has_audio_encoder",
    TEMPLATE,
    "tokenizer.ggml.tokens",
    "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.prefix_token_id",
    "tokenizer.ggml.suffix_token_id",
];

/// Keys that are kept of each architecture: what follows its name.
const OWN_KEYS: [&str; 15] = [
    "context_length",
    "block_count",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "pooling_type",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.causal",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
];

/// Values by their keys.
#[derive(Debug, Default)]
pub(super) struct Values(BTreeMap<String, Value>);

impl Values {
    /// Whether the value of a key counts, as far as there is room for it.
    pub(super) fn want(&self, key: &str) -> bool {
        let own = || key.split_once('.').is_some_and(|(_, own)| OWN_KEYS.contains(&own));
        self.0.len() < MAX_VALUES && (KEYS.contains(&key) || own())
    }

    /// The longest text of a key that is kept, in bytes.
    pub(super) fn longest(key: &str) -> u64 {
        if key == TEMPLATE { MAX_TEMPLATE } else { MAX_TEXT }
    }

    pub(super) fn put(&mut self, key: String, value: Value) {
        self.0.insert(key, value);
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Number(number) => Some(*number),
            Value::Numbers(numbers) => numbers.iter().max().copied(),
            _ => None,
        }
    }

    pub(super) fn length(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Length(length) => Some(*length),
            Value::Numbers(numbers) => Some(numbers.len() as u64),
            _ => None,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// A value of the architecture's own.
    pub(super) fn own(&self, key: &str) -> Option<&Value> {
        self.0.get(&self.own_key(key)?)
    }

    /// A number of the architecture's own.
    pub(super) fn own_number(&self, key: &str) -> Option<u64> {
        self.number(&self.own_key(key)?)
    }

    fn own_key(&self, key: &str) -> Option<String> {
        Some(format!("{}.{key}", self.text("general.architecture")?))
    }
}
