//! The events and the response object of a Responses provider, with the fields that are carried
//! over.
//!
//! Reading is as lenient as for Chat Completions: a missing or `null` field counts as empty.

use protocol::json::lenient::{Count, List, Text, TextOrJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::{
    Usage,
    chunk::{CompletionDetails, PromptDetails},
};

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Event<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(default)]
    pub(super) delta: TextOrJson<'a>,
    pub(super) item: Option<Item<'a>>,
    pub(super) response: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Response<'a> {
    #[serde(default)]
    pub(super) status: Text<'a>,
    pub(super) output: Option<List<Item<'a>>>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) incomplete_details: Option<Details<'a>>,
    pub(super) usage: Option<ResponseUsage>,
}

/// Why a response is incomplete.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Details<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(super) struct Item<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) content: List<Piece<'a>>,
    #[serde(default)]
    pub(super) summary: List<Piece<'a>>,
    #[serde(default)]
    pub(super) call_id: Text<'a>,
    #[serde(default)]
    pub(super) name: Text<'a>,
    #[serde(default)]
    pub(super) arguments: TextOrJson<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct ResponseUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    input_tokens_details: Option<PromptDetails>,
    output_tokens_details: Option<CompletionDetails>,
}

impl From<ResponseUsage> for Usage {
    fn from(usage: ResponseUsage) -> Self {
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            prompt_tokens_details: usage.input_tokens_details.unwrap_or_default(),
            completion_tokens_details: usage.output_tokens_details.unwrap_or_default(),
            ..Self::default()
        }
    }
}
