//! Bytes of an answer as base64 in JSON (`tunnel.response.chunk`).

use std::fmt;

use base64::{Engine as _, display::Base64Display};
use bytes::Bytes;
use serde::{
    Deserializer, Serializer,
    de::{Error, Visitor},
};

use crate::lenient_base64::LENIENT;

pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(bytes, &LENIENT))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    deserializer.deserialize_str(Chunk)
}

/// Decodes the text in place, without a copy of the text itself.
struct Chunk;

impl Visitor<'_> for Chunk {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        let bytes = LENIENT.decode(text);
        bytes.map(Bytes::from).map_err(|error| E::custom(format_args!("not base64: {error}")))
    }
}
