//! Answers that a server makes itself: errors, and that a model is loaded.

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::json;

/// An error, as the body of an answer.
pub fn error_body(message: &str) -> String {
    json::write(&Error { error: message })
}

/// An error, as the last line of a stream.
pub fn error_line(message: &str) -> String {
    error_body(message) + "\n"
}

/// A moment as Ollama writes it: RFC 3339 in UTC with nanoseconds. A moment after the year 9999 is the
/// last one there is.
pub fn timestamp(seconds: u64, nanos: u32) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let moment = Timestamp::new(seconds, i32::try_from(nanos).unwrap_or(0));
    format!("{:.9}", moment.unwrap_or(Timestamp::MAX))
}

/// The answer to a request without a prompt: its model was loaded, or unloaded.
pub fn nothing_asked(chat: bool, model: &str, created_at: &str, unloads: bool) -> String {
    json::write(&NothingAsked {
        model,
        created_at,
        message: chat.then_some(Message { role: "assistant", content: "" }),
        response: (!chat).then_some(""),
        done: true,
        done_reason: if unloads { "unload" } else { "load" },
    })
}

/// The answer to a request to embed an empty input.
pub fn nothing_embedded(model: &str) -> String {
    json::write(&NothingEmbedded { model, embeddings: [] })
}

/// A digest for a model. It is made of its name, because the server does not have its files, and is
/// always the same for a name.
pub fn digest(name: &str) -> String {
    hex::encode(Sha256::digest(name.as_bytes()))
}

/// A count of parameters as Ollama writes it: `8.2B`, `596M`.
pub fn parameter_size(parameters: u64) -> String {
    let scaled = |unit: f64| parameters as f64 / unit;
    match parameters {
        1_000_000_000.. => format!("{:.1}B", scaled(1e9)),
        1_000_000.. => format!("{:.0}M", scaled(1e6)),
        1_000.. => format!("{:.0}K", scaled(1e3)),
        _ => parameters.to_string(),
    }
}

#[derive(Serialize)]
struct NothingEmbedded<'a> {
    model: &'a str,
    embeddings: [(); 0],
}

#[derive(Serialize)]
struct Error<'a> {
    error: &'a str,
}

#[derive(Serialize)]
struct NothingAsked<'a> {
    model: &'a str,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<&'static str>,
    done: bool,
    done_reason: &'static str,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_text() {
        assert_eq!(error_body("no \"m\""), r#"{"error":"no \"m\""}"#);
        assert_eq!(error_line("x"), "{\"error\":\"x\"}\n");
    }

    #[test]
    fn moments_have_nanoseconds() {
        assert_eq!(timestamp(1_795_735_362, 5), "2026-11-26T23:22:42.000000005Z");
        assert_eq!(timestamp(0, 0), "1970-01-01T00:00:00.000000000Z");
        assert!(timestamp(u64::MAX, u32::MAX).starts_with("9999-"));
    }

    #[test]
    fn sizes_and_digests_have_ollamas_form() {
        for (count, text) in
            [(8_190_735_360, "8.2B"), (595_776_512, "596M"), (1_500, "2K"), (7, "7")]
        {
            assert_eq!(parameter_size(count), text);
        }
        assert_eq!(digest("m").len(), 64);
        assert_ne!(digest("m"), digest("n"));
        assert_eq!(nothing_embedded("m"), r#"{"model":"m","embeddings":[]}"#);
    }

    #[test]
    fn a_loaded_model_says_so_in_each_form() {
        let chat = nothing_asked(true, "m", "t", false);
        assert_eq!(
            chat,
            r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":""},"done":true,"done_reason":"load"}"#
        );
        let generate = nothing_asked(false, "m", "t", true);
        assert_eq!(
            generate,
            r#"{"model":"m","created_at":"t","response":"","done":true,"done_reason":"unload"}"#
        );
    }
}
