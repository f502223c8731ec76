//! Fields of stock peers, read as far as they can be understood: what is of another type than it
//! should be is taken as missing, so that it costs no message.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer)
}

/// Text; numbers are read as their digits.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(opt_text(deserializer)?.unwrap_or_default())
}

pub(super) fn opt_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    Ok(match value(deserializer)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let Value::Array(values) = value(deserializer)? else { return Ok(Vec::new()) };
    let text = |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    Ok(values.into_iter().filter_map(text).collect())
}

pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(opt_number(deserializer)?.unwrap_or_default())
}

/// A number; text that is one counts, too.
pub(super) fn opt_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let number = match value(deserializer)? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    Ok(number.filter(|number: &f64| number.is_finite()))
}

pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(opt_count(deserializer)?.unwrap_or_default())
}

/// A whole number that is not negative: others are rounded, or taken as the nearest that is one.
pub(super) fn opt_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    // The conversion saturates.
    Ok(opt_number(deserializer)?.map(|number| number.round() as u32))
}

pub(super) fn tier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let tier = opt_number(deserializer)?.map(|number| number.round() as u8);
    Ok(tier.filter(|tier| *tier <= 4).unwrap_or(4))
}

pub(super) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let percent = opt_number(deserializer)?.map(|number| number.round().clamp(0.0, 100.0) as u8);
    Ok(percent.unwrap_or(100))
}

pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(opt_flag(deserializer)?.unwrap_or_default())
}

pub(super) fn opt_flag<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<bool>, D::Error> {
    Ok(match value(deserializer)? {
        Value::Bool(flag) => Some(flag),
        Value::Number(number) => number.as_f64().map(|number| number != 0.0),
        _ => None,
    })
}

/// Whatever can be read as it should be.
pub(super) fn opt<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(value(deserializer)?).ok())
}
