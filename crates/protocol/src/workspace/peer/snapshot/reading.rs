//! Reads the objects of a snapshot one by one, without building values for ignored input.

use std::{fmt, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{State, Tombstone};
use crate::workspace::{
    ids::SessionId,
    limits::OBJECTS_MAX,
    peer::{
        lenient::{any, count},
        object::{BadObject, fields_of},
        project::ProjectObject,
        session::SessionObject,
        team::TeamObject,
    },
};

impl<'de> Deserialize<'de> for State {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut reading = Reading::default();
        (&mut reading).deserialize(deserializer)?;
        Ok(reading.state)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    Sessions,
    Projects,
    Teams,
    Tombstones,
    Version,
    #[serde(other)]
    Other,
}

/// A state while it is read.
#[derive(Default)]
struct Reading {
    state: State,
    objects: usize,
}

impl Reading {
    fn entries(&mut self, read: fn(&mut Self, Option<&str>, &str)) -> Entries<'_> {
        Entries { reading: self, read }
    }

    fn session(&mut self, key: Option<&str>, text: &str) {
        let read = self.next(|| SessionObject::read(text, id(key)));
        self.state.sessions.extend(read);
    }

    fn project(&mut self, key: Option<&str>, text: &str) {
        let read = self.next(|| ProjectObject::read(text, id(key)));
        self.state.projects.extend(read);
    }

    fn team(&mut self, key: Option<&str>, text: &str) {
        let read = self.next(|| TeamObject::read(text, id(key)));
        self.state.teams.extend(read);
    }

    fn tombstone(&mut self, key: Option<&str>, text: &str) {
        let read = self.next(|| Tombstone::read(text, id(key)));
        self.state.tombstones.extend(read);
    }

    /// Reads one more object, unless there are too many.
    fn next<T>(&mut self, read: impl FnOnce() -> Result<T, BadObject>) -> Option<T> {
        let read = if self.objects < OBJECTS_MAX { read().ok() } else { None };
        match read.is_some() {
            true => self.objects += 1,
            false => self.state.skipped += 1,
        }
        read
    }
}

fn id<T: FromStr>(key: Option<&str>) -> Option<T> {
    key.and_then(|key| key.parse().ok())
}

impl Tombstone {
    /// Reads a tombstone, whose id may be its key, its whole value, or a field in it.
    fn read(text: &str, key: Option<SessionId>) -> Result<Self, BadObject> {
        let named = serde_json::from_str(text).ok();
        let fields: TombstoneFields = fields_of(text).unwrap_or_default();
        let session_id = key.or(named).or(fields.session_id).or(fields.id);
        let session_id = session_id.ok_or(BadObject::NoId)?;
        Ok(Self { session_id, generation: fields.generation })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TombstoneFields {
    #[serde(deserialize_with = "any")]
    session_id: Option<SessionId>,
    #[serde(deserialize_with = "any")]
    id: Option<SessionId>,
    #[serde(deserialize_with = "count")]
    generation: Option<u64>,
}

impl<'de> DeserializeSeed<'de> for &mut Reading {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of sessions, projects and teams")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                Field::Sessions => map.next_value_seed(self.entries(Reading::session))?,
                Field::Projects => map.next_value_seed(self.entries(Reading::project))?,
                Field::Teams => map.next_value_seed(self.entries(Reading::team))?,
                Field::Tombstones => map.next_value_seed(self.entries(Reading::tombstone))?,
                Field::Version => self.state.version = version(map.next_value()?),
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn version(raw: &RawValue) -> u64 {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Reads each value of a map, with its key, or of a list. Anything else counts as empty.
struct Entries<'a> {
    reading: &'a mut Reading,
    read: fn(&mut Reading, Option<&str>, &str),
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, raw)) = map.next_entry::<String, &RawValue>()? {
            (self.read)(self.reading, Some(&key), raw.get());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<&RawValue>()? {
            (self.read)(self.reading, None, raw.get());
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
