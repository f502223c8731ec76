//! Texts, counts and lists, read leniently: backends differ in what they send for them, and all forms
//! can be understood.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize,
    de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// A type that can be read from some kinds of JSON value. Every other kind, and `null`, gives its
/// default.
pub trait Lenient<'de>: Default {
    /// From a string.
    fn of_text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    /// From a number.
    fn of_number(_: f64) -> Self {
        Self::default()
    }

    /// From a whole number, of which no digit may be lost.
    fn of_count(count: u64) -> Self {
        Self::of_number(count as f64)
    }

    /// From a list.
    ///
    /// # Errors
    /// The errors of its items.
    fn of_list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

/// Reads a value of any kind.
///
/// # Errors
/// When it is not JSON.
pub fn any<'de, T: Lenient<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(AnyVisitor(PhantomData))
}

struct AnyVisitor<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for AnyVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<T, E> {
        Ok(T::of_text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, count: u64) -> Result<T, E> {
        Ok(T::of_count(count))
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::of_number(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }
}

/// A text that may be missing, `null`, or a list of parts with `text`; anything else counts as
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(
    /// The text; empty when it is missing.
    pub Cow<'a, str>,
);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Text<'a> {
    fn of_text(text: Cow<'de, str>) -> Self {
        Self(text)
    }

    fn of_list<A: SeqAccess<'de>>(mut parts: A) -> Result<Self, A::Error> {
        let mut text = String::new();
        while let Some(TextPart(part)) = parts.next_element()? {
            text.push_str(&part);
        }
        Ok(Self(Cow::Owned(text)))
    }
}

/// A part of a list: a text itself, or an object with one.
struct TextPart(String);

impl<'de> Deserialize<'de> for TextPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let part = serde_json::Value::deserialize(deserializer)?;
        let text = part.get("text").unwrap_or(&part).as_str();
        Ok(Self(text.unwrap_or_default().to_owned()))
    }
}

/// A count that may be missing, `null` or have a fraction; anything else counts as missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(
    /// The count, if any.
    pub Option<u64>,
);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl Lenient<'_> for Count {
    fn of_count(count: u64) -> Self {
        Self(Some(count))
    }

    fn of_number(number: f64) -> Self {
        Self((number >= 0.0).then_some(number as u64))
    }
}

/// A text, or any other value as its JSON: arguments of a call may be either. `null` counts as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextOrJson<'a>(
    /// `None` when it is missing.
    pub Option<Cow<'a, str>>,
);

impl<'de: 'a, 'a> Deserialize<'de> for TextOrJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if raw.starts_with('"') {
            let text: Text<'_> = serde_json::from_str(raw).map_err(Error::custom)?;
            return Ok(Self(Some(text.0)));
        }
        Ok(Self((raw != "null").then_some(Cow::Borrowed(raw))))
    }
}

/// A list that may be missing or `null`, or have `null` in it, which is left out. Any other value counts
/// as missing.
#[derive(Debug, Clone)]
pub struct List<T>(
    /// The elements.
    pub Vec<T>,
);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn of_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = Self::default();
        while let Some(item) = items.next_element::<Option<T>>()? {
            list.0.extend(item);
        }
        Ok(list)
    }
}

/// Reads `null` as the default.
///
/// # Errors
/// When the value is neither `null` nor a `T`.
pub fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}
