//! Requests of clients, forwarded to the member that can serve them: `forwarded_request`,
//! `forwarded_response`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::lenient::{count, nodes};
use crate::workspace::{
    bounded::text,
    limits::{HOPS_MAX, REQUEST_ID_MAX, VISITED_MAX},
};

/// `forwarded_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedRequest {
    /// Its id, which the response repeats.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
    /// The client's message, as JSON text.
    #[serde(deserialize_with = "json_text")]
    pub payload: String,
    /// How often it may still be forwarded: at most [`HOPS_MAX`], which is also the default.
    #[serde(default = "all_hops", deserialize_with = "hops")]
    pub hops: u8,
    /// The members that it has passed. Ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default, deserialize_with = "nodes::<_, VISITED_MAX>")]
    pub visited: Vec<String>,
}

/// `forwarded_response`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedResponse {
    /// The id of the request.
    #[serde(deserialize_with = "text::<_, REQUEST_ID_MAX>")]
    pub request_id: String,
    /// The daemon's message, as JSON text.
    #[serde(deserialize_with = "json_text")]
    pub payload: String,
}

/// JSON text, given as a string or as plain JSON.
fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    Ok(serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned()))
}

fn all_hops() -> u8 {
    HOPS_MAX
}

fn hops<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let hops = count(deserializer)?.and_then(|hops| u8::try_from(hops).ok());
    Ok(hops.unwrap_or(HOPS_MAX).min(HOPS_MAX))
}
