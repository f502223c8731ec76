//! Events, as far as they matter.

use protocol::json::lenient::{Count, Text, TextOrJson, or_default};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The data of an event, the fields of all types together.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(default)]
    pub(super) sequence_number: Count,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(default)]
    pub(super) content_index: Count,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(borrow, default)]
    pub(super) delta: TextOrJson<'a>,
    #[serde(borrow)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) part: PartHead<'a>,
}

/// The beginning of a part of content.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PartHead<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
}
