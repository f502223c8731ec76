//! Ids of the workspace's objects: UUIDs, with a type for each kind.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use uuid::{Builder, Uuid};

use crate::json::clip;

/// Text that is not an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an id such as 550e8400-e29b-41d4-a716-446655440000")]
pub struct NotAnId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// On the wire and for people: a UUID with hyphens, in lower case.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// The UUID as an id.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// An id made of the caller's random bits: a UUID of version 4.
            pub const fn from_random(bits: u128) -> Self {
                Self(Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
            }

            /// Its UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self.0.as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                Uuid::try_parse(text).map(Self).map_err(|_| NotAnId)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(AnId).map(Self)
            }
        }
    )+};
}

ids! {
    /// One session: a terminal, an agent, or an adopted process.
    SessionId,
    /// One project: a working directory known to the workspace.
    ProjectId,
    /// One team: a leader session and its team workers.
    TeamId,
    /// One wait for team workers, by which it is resumed.
    WaitId,
    /// One question of an agent about the use of a tool.
    PermissionId,
}

struct AnId;

impl Visitor<'_> for AnId {
    type Value = Uuid;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id such as 550e8400-e29b-41d4-a716-446655440000")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Uuid, E> {
        Uuid::try_parse(text).map_err(|_| E::invalid_value(Unexpected::Str(clip(text, 64)), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_form_and_several_spellings() {
        let id: SessionId = "550E8400-E29B-41D4-A716-446655440000".parse().unwrap();
        assert_eq!(id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!("550e8400e29b41d4a716446655440000".parse(), Ok(id));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"550e8400-e29b-41d4-a716-446655440000\"");
        assert_eq!(serde_json::from_str::<SessionId>(&json).unwrap(), id);
        assert_eq!("uuid-a".parse::<TeamId>(), Err(NotAnId));
    }

    #[test]
    fn random_bits_become_a_uuid_of_version_4() {
        let id = WaitId::from_random(u128::MAX);
        assert_eq!(id.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(WaitId::from_uuid(id.uuid()), id);
    }

    #[test]
    fn a_bad_id_gets_a_short_error() {
        let long = format!("\"{}\"", "x".repeat(100_000));
        let error = serde_json::from_str::<ProjectId>(&long).unwrap_err().to_string();
        assert!(error.contains("expected an id such as") && error.len() < 300, "{error}");
    }
}
