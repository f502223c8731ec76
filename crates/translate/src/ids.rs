//! Shortens and cleans ids and other short texts as providers demand. The same text always gives the
//! same result, so that a call and its result still belong together. Different texts give different
//! results, but for a collision of hashes.

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The longest id of a call in OpenAI's Chat Completions, in bytes.
pub(crate) const CHAT_CALL_ID: usize = 40;

/// The longest id of a call in Responses, and the longest `user` and name of a tool of OpenAI's APIs, in
/// bytes.
pub(crate) const OPENAI_ID: usize = 64;

/// The longest `metadata.user_id` of Messages, in bytes.
pub(crate) const MESSAGES_USER: usize = 256;

/// The length of the mark in a text that was changed: a dash and eight digits.
const MARK: usize = 9;

/// The text, or its beginning with a mark if it is longer than `max` bytes.
pub(crate) fn at_most(text: Cow<'_, str>, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text;
    }
    let end = text.floor_char_boundary(max.saturating_sub(MARK));
    marked(&text[..end], &text)
}

/// The text in letters, digits, `_` and `-`, the only ones in ids of Messages. If it had other characters,
/// they are replaced and a mark is added.
pub(crate) fn plain(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    let replaced: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    marked(&replaced, &text)
}

fn marked<'a>(changed: &str, text: &str) -> Cow<'a, str> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // The lower half of the hash makes eight digits.
    Cow::Owned(format!("{changed}-{:08x}", hasher.finish() as u32))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_fine_stays() {
        assert!(matches!(at_most("call_1".into(), 6), Cow::Borrowed("call_1")));
        assert!(matches!(plain("toolu_01-A".into()), Cow::Borrowed("toolu_01-A")));
    }

    #[test]
    fn what_was_changed_still_differs() {
        assert!(plain("functions.f:0".into()).starts_with("functions_f_0-"));
        assert_ne!(plain("call|1".into()), plain("call/1".into()));
        assert!(!plain("".into()).is_empty());
        let (one, other) = ("x".repeat(50), "x".repeat(51));
        assert_ne!(at_most(one.as_str().into(), 40), at_most(other.as_str().into(), 40));
    }

    proptest! {
        #[test]
        fn any_text_fits(text in ".{0,80}") {
            prop_assert!(at_most(text.as_str().into(), 40).len() <= 40);
            let id = plain(text.as_str().into());
            prop_assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            prop_assert_eq!(&plain(text.as_str().into()), &id);
            prop_assert_eq!(plain(id.clone()), id.clone());
        }
    }
}
