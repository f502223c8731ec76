//! Ids of requests, transfers and devices, as others write them.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize};

/// The longest id that is taken, in bytes.
pub const MAX_ID: usize = 128;

/// An id, spelled as its sender wrote it. Stock peers write UUIDs in upper or in lower case, and
/// may answer in the other one: ids are compared without case. An id from the wire has at most
/// [`MAX_ID`] bytes.
#[derive(Clone, Serialize)]
#[serde(transparent)]
pub struct WireId(String);

impl WireId {
    /// A UUID in lower case made of the caller's random bits: what stock peers take as an id.
    pub fn from_random(bits: u128) -> Self {
        Self(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string())
    }

    /// The id in its sender's spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of the UUID that it is, if it is one.
    pub fn uuid(&self) -> Option<[u8; 16]> {
        uuid::Uuid::try_parse(&self.0).ok().map(uuid::Uuid::into_bytes)
    }
}

impl<'de> Deserialize<'de> for WireId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > MAX_ID {
            return Err(serde::de::Error::custom(format_args!(
                "an id of {} bytes: at most {MAX_ID} are taken",
                text.len()
            )));
        }
        Ok(Self(text))
    }
}

impl From<&str> for WireId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl PartialEq for WireId {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for WireId {}

impl Hash for WireId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.bytes().for_each(|byte| state.write_u8(byte.to_ascii_lowercase()));
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_the_same_whatever_their_case_and_are_written_as_they_came() {
        let (lower, upper) = (WireId::from("ab-1f"), WireId::from("AB-1F"));
        assert_eq!(lower, upper);
        assert!(HashSet::from([lower]).contains(&upper));
        assert_eq!(upper.to_string(), "AB-1F");
        assert_ne!(upper, WireId::from("AB-1E"));
    }

    #[test]
    fn an_id_of_ours_is_a_uuid() {
        let id = WireId::from_random(7);
        assert_eq!(id.as_str().len(), 36);
        assert!(id.uuid().is_some());
        assert_eq!(WireId::from("r-1").uuid(), None);
    }
}
