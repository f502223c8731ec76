//! Fields of other members, read leniently: a field of the wrong type counts as missing, so that it
//! does not cost the message. No values are built for ignored input.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error, IgnoredAny},
};
use serde_json::value::RawValue;

use crate::{
    json::clip,
    workspace::limits::{NAME_MAX, PATH_MAX},
};

/// Up to here, every whole number is exact as a floating point number.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The longest text for people, in bytes.
const WORDS_MAX: usize = 1024;

/// A field without meaning, `term` or `seq`: 0 when written, ignored when read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Zero;

impl Serialize for Zero {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(0)
    }
}

impl<'de> Deserialize<'de> for Zero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A value of this type, or none.
pub(super) fn any<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// A value of this type, or its default.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    any(deserializer).map(Option::unwrap_or_default)
}

/// A name, cut to [`NAME_MAX`] bytes and without characters that control a terminal; none for empty
/// text.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(any::<_, String>(deserializer)?.and_then(|name| words_within(&name, NAME_MAX)))
}

/// A name without which the message has no meaning.
pub(super) fn needed_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    name(deserializer)?.ok_or_else(|| D::Error::custom("must be text that is not empty"))
}

/// A text for people, read like a name but longer.
pub(super) fn words<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(any::<_, String>(deserializer)?.and_then(|words| words_within(&words, WORDS_MAX)))
}

/// A path; empty when it cannot be one.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = any::<_, String>(deserializer)?;
    let fits = |path: &String| path.len() <= PATH_MAX && !path.contains('\0');
    Ok(path.filter(fits).unwrap_or_default())
}

/// The id of a member: text of at most [`NAME_MAX`] bytes that is safe to show on a terminal.
pub(super) fn node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(any::<_, String>(deserializer)?.filter(|id| is_node(id)))
}

/// The id of a member without which the message has no meaning.
pub(super) fn needed_node<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let unfit = || D::Error::custom(format!("must be text of 1 to {NAME_MAX} bytes"));
    node(deserializer)?.ok_or_else(unfit)
}

/// Ids of members, `MAX` at most; others are left out.
pub(super) fn nodes<'de, D, const MAX: usize>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut nodes: Vec<String> = or_default(deserializer)?;
    nodes.retain(|id| is_node(id));
    nodes.truncate(MAX);
    Ok(nodes)
}

/// A count; a floating point number counts where it is whole and exact.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    let whole = serde_json::from_str::<u64>(raw.get()).ok();
    Ok(whole.or_else(|| serde_json::from_str(raw.get()).ok().and_then(exact)))
}

/// A date and time. Without an offset it counts as UTC.
pub(super) fn time<'de, D>(deserializer: D) -> Result<Option<Timestamp>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(any::<_, String>(deserializer)?.and_then(|text| time_of(&text)))
}

/// Nanoseconds since 1970, or the nearest that fit.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Whether text can be the id of a member.
pub(super) fn is_node(id: &str) -> bool {
    (1..=NAME_MAX).contains(&id.len()) && !base::plain::is_unsafe(id)
}

fn words_within(text: &str, max: usize) -> Option<String> {
    // The text is cut twice, because a replaced character may be longer than the original.
    let shown = base::plain::line(clip(text.trim(), max));
    Some(clip(&shown, max).trim().to_owned()).filter(|words| !words.is_empty())
}

fn exact(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..EXACT).contains(&number)).then_some(number as u64)
}

fn time_of(text: &str) -> Option<Timestamp> {
    let utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok();
    let parsed = text.parse::<Timestamp>().ok();
    parsed.or_else(|| text.parse().ok().and_then(utc).map(|zoned| zoned.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_and_without_an_offset() {
        let at = |text: &str| time_of(text).map(nanos);
        assert_eq!(at("1970-01-01T00:00:01.000000005Z"), Some(1_000_000_005));
        assert_eq!(at("1970-01-01T01:00:01+01:00"), Some(1_000_000_000));
        assert_eq!(at("1970-01-01T00:00:01"), Some(1_000_000_000));
        assert_eq!(at("1970-01-01 00:00:01"), Some(1_000_000_000));
        assert_eq!(at("9999-01-01T00:00:00Z"), Some(i64::MAX));
        assert_eq!(at("1600-01-01T00:00:00Z"), Some(i64::MIN));
        assert_eq!(at("yesterday"), None);
    }

    #[test]
    fn a_name_is_cut_and_does_nothing_to_a_terminal() {
        let name = |text: &str| words_within(text, 8);
        assert_eq!(name(" a\u{1b}[m "), Some("a\u{fffd}[m".to_owned()));
        assert_eq!(name("abcdefghé"), Some("abcdefgh".to_owned()));
        assert_eq!(name("\u{1b}\u{1b}\u{1b}\u{1b}"), Some("\u{fffd}\u{fffd}".to_owned()));
        assert_eq!(name("  "), None);
    }

    #[test]
    fn a_count_is_whole_and_not_negative() {
        let count = |text: &str| count(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(count("7"), Some(7));
        assert_eq!(count("7.0"), Some(7));
        assert_eq!(count("18446744073709551615"), Some(u64::MAX));
        for odd in ["-1", "7.5", "1e300", "\"7\"", "null", "[7]", "{}", "true"] {
            assert_eq!(count(odd), None, "{odd}");
        }
    }
}
