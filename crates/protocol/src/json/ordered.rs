//! JSON whose members stay in their order. Of a repeated key the last value counts, at the last place.

use std::{collections::HashMap, fmt};

use serde::{
    Deserialize, Serialize,
    de::{Deserializer, MapAccess, SeqAccess, Visitor},
    ser::Serializer,
};
use serde_json::Value;

/// A value.
pub(super) enum Ordered {
    /// Neither a list nor an object.
    Plain(Value),
    List(Vec<Ordered>),
    /// A member whose key comes again later is `None`.
    Object(Vec<Option<(String, Ordered)>>),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().flatten().map(|(key, value)| (key, value)))
            }
        }
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
        Ok(Ordered::Plain(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Ordered, E> {
        Ok(Ordered::Plain(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Ordered, E> {
        Ok(Ordered::Plain(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Ordered, E> {
        Ok(Ordered::Plain(value.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Ordered, E> {
        Ok(Ordered::Plain(text.into()))
    }

    fn visit_unit<E>(self) -> Result<Ordered, E> {
        Ok(Ordered::Plain(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ordered, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Ordered::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
        let (mut members, mut places) = (Vec::new(), HashMap::new());
        while let Some((key, value)) = map.next_entry::<String, Ordered>()? {
            if let Some(before) = places.insert(key.clone(), members.len()) {
                members[before] = None;
            }
            members.push(Some((key, value)));
        }
        Ok(Ordered::Object(members))
    }
}
