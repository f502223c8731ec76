//! From a consumer of the node protocol (`POST /api/chat`) to a Chat Completions provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `messages`: objects with `role` and `content`, or strings that alternate between user and assistant | messages |
//! | `system` | the first message; absent, a short neutral one; empty, none |
//! | `temperature` | itself from 0.01 to 0.99, else 0, absent among it |
//! | `max_new_tokens` | `max_tokens`; absent, 50 |
//! | `conversation_id`, `user_id` and fields not known | dropped |
//!
//! The answer has one JSON object on each line: `{"o":"text"}` as text comes, and at the end
//! `{"done":true}` or `{"err":"…"}`. It is always a stream, even if the provider's answer is not.
//! Thoughts are left out.

mod request;

pub use request::request;

use protocol::{
    failure::{BadAnswer, Failure},
    json,
};

use crate::{
    answer::{Answer, Body, Context},
    chat::{FromChat, Outcome, Part, Writer},
};

/// The error of stock servers for a request that cannot be served.
pub const INVALID: &str = "invalid request";

/// The error of stock servers for a model without a provider.
pub const UNKNOWN_MODEL: &str = "unknown model";

/// Reads the provider's answer. `request` is the client's own body; nothing of it is repeated.
pub fn answer(_: &Context, _: &[u8]) -> impl Answer + use<> {
    FromChat::new(LineWriter::default())
}

/// Writes a line for each piece of text.
#[derive(Debug, Default)]
struct LineWriter {
    /// Whether the open part is text.
    is_text: bool,
    line: String,
}

impl LineWriter {
    /// Writes a line. `before`: its beginning, including the quote before the text.
    fn line(&mut self, before: &str, text: &str, out: &mut Vec<u8>) {
        self.line.clear();
        self.line.push_str(before);
        json::push_escaped(&mut self.line, text);
        self.line.push_str("\"}\n");
        out.extend_from_slice(self.line.as_bytes());
    }
}

impl Writer for LineWriter {
    fn body(&self) -> Body {
        Body::Lines
    }

    /// Every answer consists of lines, even an error.
    fn error_body(&self) -> Body {
        Body::Lines
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.is_text = matches!(part, Part::Text | Part::Refusal);
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.is_text {
            self.line(r#"{"o":""#, text, out);
        }
    }

    fn finish(&mut self, _: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        out.extend_from_slice(b"{\"done\":true}\n");
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.line(r#"{"err":""#, &failure.message, out);
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        match stock_word(status) {
            Some(word) => {
                self.line(&format!(r#"{{"err":"{word}","message":""#), &failure.message, out);
            }
            None => self.fail(failure, out),
        }
    }
}

/// The error text of stock servers for a refusal, if they have one.
fn stock_word(status: u16) -> Option<&'static str> {
    match status {
        400 | 413 | 422 => Some(INVALID),
        404 => Some(UNKNOWN_MODEL),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
