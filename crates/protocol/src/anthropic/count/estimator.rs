//! Reads a value as the type that is expected there. A value of another type is skipped: an
//! estimate does not validate the request.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A reader for one place in the request.
pub(super) trait Estimator: Default {
    fn string(&mut self, _text: &str) {}

    fn list<'de, S: SeqAccess<'de>>(&mut self, mut list: S) -> Result<(), S::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// Called for each field of the object at this place. Its value must be read. If a field comes
    /// twice, the last one counts.
    fn field<'de, M: MapAccess<'de>>(&mut self, _key: Key, map: &mut M) -> Result<(), M::Error> {
        skip(map)
    }

    fn tokens(&self) -> u64;
}

/// The fields that are read from any object.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
pub(super) enum Key {
    System,
    Messages,
    Tools,
    Content,
    Name,
    Description,
    InputSchema,
    Type,
    Text,
    Input,
    Source,
    Data,
    #[serde(other)]
    Other,
}

pub(super) fn skip<'de, M: MapAccess<'de>>(map: &mut M) -> Result<(), M::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

pub(super) fn value<'de, P: Estimator, M: MapAccess<'de>>(map: &mut M) -> Result<P, M::Error> {
    map.next_value().map(|At(place)| place)
}

pub(super) fn tokens<'de, P: Estimator, M: MapAccess<'de>>(map: &mut M) -> Result<u64, M::Error> {
    value::<P, M>(map).map(|place| place.tokens())
}

/// Estimates each item of a list and adds them up; `None` for anything but a list.
pub(super) struct List<P> {
    pub(super) total: Option<u64>,
    of: PhantomData<P>,
}

impl<P> Default for List<P> {
    fn default() -> Self {
        Self { total: None, of: PhantomData }
    }
}

impl<P: Estimator> Estimator for List<P> {
    fn list<'de, S: SeqAccess<'de>>(&mut self, mut list: S) -> Result<(), S::Error> {
        let mut total = 0;
        while let Some(At(place)) = list.next_element::<At<P>>()? {
            total += place.tokens();
        }
        self.total = Some(total);
        Ok(())
    }

    fn tokens(&self) -> u64 {
        self.total.unwrap_or(0)
    }
}

pub(super) struct At<P>(pub(super) P);

impl<'de, P: Estimator> Deserialize<'de> for At<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(P::default()))
    }
}

struct Reader<P>(P);

impl<'de, P: Estimator> Visitor<'de> for Reader<P> {
    type Value = At<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<At<P>, E> {
        Ok(At(self.0))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<At<P>, E> {
        Ok(At(self.0))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<At<P>, E> {
        Ok(At(self.0))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<At<P>, E> {
        Ok(At(self.0))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<At<P>, E> {
        Ok(At(self.0))
    }

    fn visit_str<E: Error>(mut self, text: &str) -> Result<At<P>, E> {
        self.0.string(text);
        Ok(At(self.0))
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, list: S) -> Result<At<P>, S::Error> {
        self.0.list(list)?;
        Ok(At(self.0))
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<At<P>, M::Error> {
        while let Some(key) = map.next_key()? {
            self.0.field(key, &mut map)?;
        }
        Ok(At(self.0))
    }
}
