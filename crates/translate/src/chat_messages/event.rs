//! Messages and the events of their streams, as providers send them.

use protocol::json::lenient::{Count, List, Text, TextOrJson};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The data of an event, with the fields of all types of events.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    /// `message_start`: the message; only its usage is known yet.
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    /// `content_block_start`.
    #[serde(borrow, default)]
    pub(super) content_block: Option<Block<'a>>,
    /// `content_block_delta`, `message_delta`.
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// `message_delta`: the counts of the whole message so far.
    pub(super) usage: Option<MessageUsage>,
}

/// A whole message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<List<Block<'a>>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_sequence: Text<'a>,
    pub(super) usage: Option<MessageUsage>,
}

/// A block of content, or the start of one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: TextOrJson<'a>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Text<'a>,
    #[serde(borrow, default)]
    pub(super) stop_sequence: Text<'a>,
}

/// The usage of a message. The three kinds of input tokens add up to the prompt.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct MessageUsage {
    #[serde(default)]
    pub(super) input_tokens: Count,
    #[serde(default)]
    pub(super) cache_creation_input_tokens: Count,
    #[serde(default)]
    pub(super) cache_read_input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens: Count,
}
