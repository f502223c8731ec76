//! Text that programs print: bounded, judged, and kept.

use std::borrow::Cow;

use protocol::json::repair;
use serde::{Deserialize, Serialize};

/// The longest final answer of a turn, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;
/// The most bytes of text in a notice or an error.
const MAX_NOTICE: usize = 2 * 1024;
/// The most bytes of a prompt that are shown.
const MAX_SHOWN_PROMPT: usize = 64 * 1024;

/// The beginning of a text, cut before the character that would exceed `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The part of a text that fits into a notice.
pub(crate) fn notice(text: &str) -> String {
    cut(plain(text).trim(), MAX_NOTICE).to_owned()
}

/// The part of a prompt that is shown to all clients.
pub(crate) fn prompt(text: &str) -> String {
    match cut(text, MAX_SHOWN_PROMPT) {
        whole if whole.len() == text.len() => whole.to_owned(),
        beginning => format!("{beginning}…"),
    }
}

/// Some programs pass on an error of a model's server as JSON within their own text. Its message
/// says all that people want to know, so it replaces the JSON.
fn plain(text: &str) -> Cow<'_, str> {
    let (Some(from), Some(to)) = (text.find('{'), text.rfind('}')) else { return text.into() };
    let object = text.get(from..=to).and_then(repair::value);
    let message = object.as_ref().and_then(|object| object.pointer("/error/message")?.as_str());
    match message {
        Some(message) => format!("{}{message}{}", &text[..from], &text[to + 1..]).into(),
        None => text.into(),
    }
}

/// Whether this can be the id of a conversation: it is short, and cannot be mistaken for a flag.
pub(crate) fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    (1..=200).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(fits)
}

/// Whether a program's text says that it does not know a conversation.
pub(crate) fn says_unknown_conversation(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    let names = ["conversation", "session", "thread", "rollout"];
    let unknown = ["not found", "no such", "invalid", "unknown", "does not exist", "notfounderror"];
    let no = |name: &&str| {
        said.contains(&format!("no {name}")) || said.contains(&format!("no saved {name}"))
    };
    let named = names.iter().any(|name| said.contains(name));
    names.iter().any(no) || named && unknown.iter().any(|word| said.contains(word))
}

/// The final answer of a turn, as it arrives.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer(String);

impl Answer {
    /// Appends a piece of the answer.
    pub(crate) fn push(&mut self, text: &str) {
        self.0.push_str(cut(text, MAX_ANSWER - self.0.len()));
    }

    /// Replaces the answer: the text before was not the final one.
    pub(crate) fn set(&mut self, text: &str) {
        self.clear();
        self.push(text);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn take(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.0)).filter(|text| !text.is_empty())
    }
}
