//! How much memory a model takes while it is loaded: an estimate, rather too great than too small.
//!
//! ```text
//! memory   = files + cache + state + compute + program
//! cache    = context * parallel * layers * kv heads * (key length + value length) * 2 bytes
//! state    = parallel * what a recurrent model remembers, which does not grow with the context
//! compute  = 512 * 4 bytes * (vocabulary + 4 * embedding + 2 * feed forward)
//!          + 512 * 2 bytes * context * parallel
//! program  = 64 MiB
//! ```
//!
//! Keys and values are stored in 16 bits each, and 512 tokens are computed at once: the defaults of
//! llama.cpp. Layers that look back only a part of the context are counted as if they looked back all of it.

use super::values::{Value, Values};

/// How many tokens are computed at once.
pub const BATCH: u64 = 512;

/// The memory that the program takes beside the model, in bytes.
pub const PROGRAM: u64 = 64 << 20;

/// The bytes of a key's or a value's number.
const CACHED: u64 = 2;
/// The bytes of a number that is computed with.
const COMPUTED: u64 = 4;
/// The bytes of a number that says which tokens see which.
const MASKED: u64 = 2;

/// The memory that a model takes beside its weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// For each token of its context, in bytes.
    pub cache_per_token: u64,
    /// For each request at a time, in bytes.
    pub state: u64,
    /// The memory to compute with, in bytes, without the part that grows with the context.
    pub compute: u64,
}

impl Needs {
    pub(super) fn of(values: &Values) -> Self {
        Self {
            cache_per_token: cache_per_token(values),
            state: state(values),
            compute: compute(values),
        }
    }

    /// The whole memory, in bytes: with `files` bytes of files, for `parallel` requests at a time of at most
    /// `context` tokens each.
    pub fn memory(&self, files: u64, context: u64, parallel: u64) -> u64 {
        let tokens = context.saturating_mul(parallel);
        let masks = tokens.saturating_mul(BATCH * MASKED);
        [
            files,
            self.cache_per_token.saturating_mul(tokens),
            self.state.saturating_mul(parallel),
            self.compute,
            masks,
            PROGRAM,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

fn cache_per_token(values: &Values) -> u64 {
    let heads = values.own_number("attention.head_count").filter(|heads| *heads > 0);
    // A model that reads all of a text at once keeps nothing, nor does one without attention.
    let Some(heads) = heads.filter(|_| values.own_number("attention.causal") != Some(0)) else {
        return 0;
    };
    let each = values.own_number("embedding_length").unwrap_or_default() / heads;
    let key = values.own_number("attention.key_length").unwrap_or(each);
    let value = values.own_number("attention.value_length").unwrap_or(each);
    let of_head = key.saturating_add(value).saturating_mul(CACHED);
    cached_heads(values, heads).saturating_mul(of_head)
}

/// Of all layers together.
fn cached_heads(values: &Values, heads: u64) -> u64 {
    let layers = values.own_number("block_count").unwrap_or(1);
    match values.own("attention.head_count_kv") {
        Some(Value::Numbers(heads)) => heads.iter().copied().fold(0, u64::saturating_add),
        Some(Value::Number(heads)) => heads.saturating_mul(layers),
        _ => heads.saturating_mul(layers),
    }
}

fn state(values: &Values) -> u64 {
    let number = |key| values.own_number(key).unwrap_or_default();
    let (inner, state) = (number("ssm.inner_size"), number("ssm.state_size"));
    let groups = number("ssm.group_count").saturating_mul(state).saturating_mul(2);
    let kernel = number("ssm.conv_kernel").saturating_sub(1);
    let layer = inner
        .saturating_add(groups)
        .saturating_mul(kernel)
        .saturating_add(inner.saturating_mul(state));
    layer.saturating_mul(number("block_count")).saturating_mul(COMPUTED)
}

fn compute(values: &Values) -> u64 {
    let number = |key| values.own_number(key).unwrap_or_default();
    let words = values.length("tokenizer.ggml.tokens").unwrap_or_else(|| number("vocab_size"));
    let width = words
        .saturating_add(number("embedding_length").saturating_mul(4))
        .saturating_add(number("feed_forward_length").saturating_mul(2));
    width.saturating_mul(BATCH * COMPUTED)
}
