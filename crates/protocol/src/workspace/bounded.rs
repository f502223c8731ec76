//! Reads fields of requests with serde, and checks their bounds.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

pub(super) use crate::json::lenient::or_default;

use super::limits::{
    ADDRESS_MAX, ADDRESSES_MAX, ARGS_BYTES_MAX, ARGS_MAX, ENV_BYTES_MAX, ENV_MAX, NAME_MAX,
    PATH_MAX, PEERS_MAX, TAGS_MAX, WAITED_MAX,
};

/// A flag that is on unless it is turned off.
pub(super) fn or_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Option::deserialize(deserializer).map(|flag| flag.unwrap_or(true))
}

/// Any text of at most `MAX` bytes.
pub(super) fn text<'de, D, const MAX: usize>(deserializer: D) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    short::<MAX>(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// Any text of at most `MAX` bytes, or none.
pub(super) fn maybe_text<'de, D, const MAX: usize>(
    deserializer: D,
) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(deserializer, short::<MAX>)
}

/// A path that a process can be given: without NUL.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    a_path(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// A path that a process can be given, or none.
pub(super) fn maybe_path<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(deserializer, a_path)
}

/// A name: not empty, and without control characters.
pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    a_name(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// A name, or none.
pub(super) fn maybe_name<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(deserializer, a_name)
}

/// A name; or empty text, which removes the present one; or none.
pub(super) fn maybe_empty_name<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    checked(deserializer, |text| if text.is_empty() { Ok(()) } else { a_name(text) })
}

/// The arguments of a command, or none.
pub(super) fn maybe_args<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let args: Option<Vec<String>> = Option::deserialize(deserializer)?;
    args.as_deref().map_or(Ok(()), arguments).map_err(D::Error::custom)?;
    Ok(args)
}

pub(super) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let tags: Vec<String> = or_default(deserializer)?;
    few(tags.len(), TAGS_MAX)
        .and_then(|()| tags.iter().try_for_each(|tag| a_name(tag)))
        .map_err(D::Error::custom)?;
    Ok(tags)
}

/// Variables of an environment; `null` counts as none.
pub(super) fn env<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    maybe_env(deserializer).map(Option::unwrap_or_default)
}

/// Variables of an environment, or none.
pub(super) fn maybe_env<'de, D>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let env: Option<BTreeMap<String, String>> = Option::deserialize(deserializer)?;
    env.as_ref().map_or(Ok(()), environment).map_err(D::Error::custom)?;
    Ok(env)
}

/// Addresses of other members, or none.
pub(super) fn maybe_peers<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let peers: Option<Vec<String>> = Option::deserialize(deserializer)?;
    let fit = |peers: &[String]| {
        few(peers.len(), PEERS_MAX)?;
        peers.iter().try_for_each(|peer| short::<256>(peer))
    };
    peers.as_deref().map_or(Ok(()), fit).map_err(D::Error::custom)?;
    Ok(peers)
}

/// The ids to wait for, or none.
pub(super) fn maybe_waited<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let waited: Option<Vec<T>> = Option::deserialize(deserializer)?;
    few(waited.as_ref().map_or(0, Vec::len), WAITED_MAX).map_err(D::Error::custom)?;
    Ok(waited)
}

/// A list of at most `MAX` entries. Reading stops at the first one too many.
pub(super) fn few_of<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Few::<T, MAX>(PhantomData))
}

/// At most `MAX` texts of at most `EACH` bytes.
pub(super) fn texts<'de, D, const MAX: usize, const EACH: usize>(
    deserializer: D,
) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = few_of::<_, Text<EACH>, MAX>(deserializer)?;
    Ok(texts.into_iter().map(|Text(text)| text).collect())
}

/// The addresses of a member.
pub(super) fn addresses<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let addresses = texts::<_, ADDRESSES_MAX, ADDRESS_MAX>(deserializer)?;
    match addresses.iter().any(|address| address.contains(char::is_control)) {
        true => Err(D::Error::custom(Unfit::Control)),
        false => Ok(addresses),
    }
}

/// A text of at most `MAX` bytes.
#[derive(Deserialize)]
struct Text<const MAX: usize>(#[serde(deserialize_with = "text::<_, MAX>")] String);

struct Few<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Few<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            few(entries.len() + 1, MAX).map_err(A::Error::custom)?;
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// Why a field is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Unfit {
    #[error("must not be empty")]
    Empty,
    #[error("must not be longer than {0} bytes")]
    TooLong(usize),
    #[error("must not have more than {0} entries")]
    TooMany(usize),
    #[error("must not hold control characters")]
    Control,
    #[error("must not hold a NUL character")]
    Nul,
    #[error("must have names that are not empty and hold no `=`")]
    VariableName,
}

fn checked<'de, D>(
    deserializer: D,
    fits: impl Fn(&str) -> Result<(), Unfit>,
) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let text: Option<String> = Option::deserialize(deserializer)?;
    text.as_deref().map_or(Ok(()), fits).map_err(D::Error::custom)?;
    Ok(text)
}

fn short<const MAX: usize>(text: &str) -> Result<(), Unfit> {
    if text.len() > MAX { Err(Unfit::TooLong(MAX)) } else { Ok(()) }
}

fn no_nul(text: &str) -> Result<(), Unfit> {
    if text.contains('\0') { Err(Unfit::Nul) } else { Ok(()) }
}

fn a_path(text: &str) -> Result<(), Unfit> {
    short::<PATH_MAX>(text).and_then(|()| no_nul(text))
}

fn a_name(text: &str) -> Result<(), Unfit> {
    if text.is_empty() {
        return Err(Unfit::Empty);
    }
    if text.contains(char::is_control) {
        return Err(Unfit::Control);
    }
    short::<NAME_MAX>(text)
}

fn few(count: usize, max: usize) -> Result<(), Unfit> {
    if count > max { Err(Unfit::TooMany(max)) } else { Ok(()) }
}

fn arguments(args: &[String]) -> Result<(), Unfit> {
    few(args.len(), ARGS_MAX)?;
    together::<ARGS_BYTES_MAX>(args.iter().map(String::len))?;
    args.iter().try_for_each(|arg| no_nul(arg))
}

fn environment(env: &BTreeMap<String, String>) -> Result<(), Unfit> {
    few(env.len(), ENV_MAX)?;
    together::<ENV_BYTES_MAX>(env.iter().map(|(name, value)| name.len() + value.len()))?;
    if env.keys().any(|name| name.is_empty() || name.contains('=')) {
        return Err(Unfit::VariableName);
    }
    env.iter().flat_map(|(name, value)| [name, value]).try_for_each(|text| no_nul(text))
}

fn together<const MAX: usize>(lengths: impl Iterator<Item = usize>) -> Result<(), Unfit> {
    if lengths.sum::<usize>() > MAX { Err(Unfit::TooLong(MAX)) } else { Ok(()) }
}
