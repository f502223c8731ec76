//! Fields of stock peers, read leniently: a field of the wrong type counts as missing, so that it
//! does not cost the message. No values are built for ignored input, even if it is large.

use std::{fmt, net::SocketAddr};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;

/// The most texts of a list: more models than any peer serves.
pub(super) const MAX_TEXTS: usize = 4_096;

/// The longest text of a list, in bytes.
pub(super) const MAX_LISTED: usize = 512;

/// The most addresses.
const MAX_ADDRESSES: usize = 64;

/// Up to here, every whole number is exact as a floating point number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A value that is neither list nor object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar {
    /// Null, a list or an object.
    Other,
    Flag(bool),
    Whole(i128),
    Number(f64),
    Text(String),
}

/// The type of a field, and how a scalar of another type is read as it.
pub(super) trait FromScalar: Default {
    fn from_scalar(scalar: Scalar) -> Option<Self>;
}

/// Numbers are read as their digits.
impl FromScalar for String {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::Text(text) => Some(text),
            Scalar::Whole(number) => Some(number.to_string()),
            Scalar::Number(number) => Some(number.to_string()),
            Scalar::Other | Scalar::Flag(_) => None,
        }
    }
}

/// A number, or text that is one.
impl FromScalar for f64 {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        let number = match scalar {
            Scalar::Whole(number) => Some(number as f64),
            Scalar::Number(number) => Some(number),
            Scalar::Text(text) => text.parse().ok(),
            Scalar::Other | Scalar::Flag(_) => None,
        };
        number.filter(|number: &f64| number.is_finite())
    }
}

/// A whole number of 0 or more. Others are rounded, or replaced by the nearest that fits.
impl FromScalar for u32 {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        // The conversion saturates.
        f64::from_scalar(scalar).map(|number| number.round() as Self)
    }
}

/// A size in bytes; a floating point number counts where it is whole and exact.
impl FromScalar for u64 {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::Whole(number) => Self::try_from(number).ok(),
            Scalar::Number(number) if number.fract() == 0.0 && (0.0..EXACT).contains(&number) => {
                Some(number as Self)
            }
            _ => None,
        }
    }
}

impl FromScalar for bool {
    fn from_scalar(scalar: Scalar) -> Option<Self> {
        match scalar {
            Scalar::Flag(flag) => Some(flag),
            Scalar::Whole(number) => Some(number != 0),
            Scalar::Number(number) => Some(number != 0.0),
            Scalar::Other | Scalar::Text(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyScalar)
    }
}

struct AnyScalar;

impl<'de> Visitor<'de> for AnyScalar {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Scalar, E> {
        Ok(Scalar::Flag(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Whole(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Scalar, E> {
        Ok(Scalar::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

/// The texts of a list, up to the limits; empty for anything else.
struct Texts {
    most: usize,
    longest: usize,
}

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<String>, A::Error> {
        let mut texts = Vec::new();
        while let Some(value) = list.next_element::<Scalar>()? {
            if let Scalar::Text(text) = value
                && text.len() <= self.longest
                && texts.len() < self.most
            {
                texts.push(text);
            }
        }
        Ok(texts)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<String>, A::Error> {
        AnyScalar.visit_map(map).map(|_| Vec::new())
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }
}

/// A scalar, or the default of its type.
pub(super) fn value<'de, D: Deserializer<'de>, T: FromScalar>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(opt(deserializer)?.unwrap_or_default())
}

/// A scalar, or none.
pub(super) fn opt<'de, D: Deserializer<'de>, T: FromScalar>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Scalar::deserialize(deserializer).map(T::from_scalar)
}

/// The texts of a list, [`MAX_TEXTS`] at most and each of [`MAX_LISTED`] bytes at most; others are
/// skipped.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(Texts { most: MAX_TEXTS, longest: MAX_LISTED })
}

/// The addresses of a list, up to the limit; invalid ones are skipped.
pub(super) fn addresses<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = deserializer.deserialize_any(Texts { most: MAX_ADDRESSES, longest: 64 })?;
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}

/// A size or an offset in bytes, without which the message has no meaning.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let no_size = || Error::custom("not a whole number of bytes");
    opt(deserializer)?.ok_or_else(no_size)
}

pub(super) fn tier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let tier = opt::<_, f64>(deserializer)?.map(|number| number.round() as u8);
    Ok(tier.filter(|tier| *tier <= 4).unwrap_or(4))
}

pub(super) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let percent = opt::<_, f64>(deserializer)?.unwrap_or(100.0);
    Ok(percent.round().clamp(0.0, 100.0) as u8)
}

/// Any readable value; an unreadable one counts as missing. It is built whole: for short messages
/// only.
pub(super) fn any<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// The same, with the default for an unreadable value.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(any(deserializer)?.unwrap_or_default())
}
