//! Errors of backends: the body of an answer with an error status, or an event within a stream.

use serde_json::Value;

use super::Overflow;
use crate::json::{self, JsonReader};

/// The longest message that is repeated to a client, in bytes.
pub const MAX_MESSAGE: usize = 4096;

/// An error of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its text.
    pub message: String,
    /// Its `type`, as its API names it.
    pub kind: Option<String>,
    /// Its `code`, where it is a word.
    pub code: Option<String>,
    /// The HTTP status that it names.
    pub named_status: Option<u16>,
    /// The parameter at fault.
    pub param: Option<String>,
    /// The lengths of the prompt and of the context, in tokens, where they have fields of their own.
    pub context: Option<Box<[Option<u64>; 2]>>,
}

impl Failure {
    /// A failure with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        let (kind, code, named_status, param, context) = (None, None, None, None, None);
        Self { message: message.into(), kind, code, named_status, param, context }
    }

    /// Reads an error in any form that is found: OpenAI's and Anthropic's, a bare `error` text
    /// (Ollama), fields at the top (older vLLM), `detail` (FastAPI), or no JSON at all.
    pub fn read(body: &[u8]) -> Self {
        let mut json = JsonReader::default();
        let Ok(value) = json.whole::<Value>(body) else { return Self::of_text(body) };
        let error = ["error", "detail"].iter().find_map(|name| value.get(name));
        let error = error.filter(|error| !error.is_null()).unwrap_or(&value);
        Self::of_value(error)
    }

    /// The numbers it gives, if it says that the request is too long for the model's context.
    pub fn overflow(&self) -> Option<Overflow> {
        Overflow::read(self)
    }

    /// The HTTP status for it: the one it names, or else its code's or type's.
    pub fn status(&self) -> u16 {
        let of_code = || match self.code.as_deref() {
            Some("rate_limit_exceeded" | "insufficient_quota") => Some(429),
            Some("server_is_overloaded" | "slow_down") => Some(503),
            _ => None,
        };
        let of_kind = || match self.kind.as_deref() {
            _ if self.overflow().is_some() => 400,
            Some("invalid_request_error" | "exceed_context_size_error" | "BadRequestError") => 400,
            Some("authentication_error") => 401,
            Some("permission_error") => 403,
            Some("not_found_error" | "NotFoundError") => 404,
            Some("request_too_large") => 413,
            Some("rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota") => 429,
            Some("overloaded_error" | "unavailable_error") => 503,
            _ => 500,
        };
        self.named_status.or_else(of_code).unwrap_or_else(of_kind)
    }

    fn of_text(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_MESSAGE)]);
        match text.trim() {
            "" => Self::new("the backend gave no reason"),
            text => Self::new(text),
        }
    }

    fn of_value(error: &Value) -> Self {
        let word = |name: &str| error.get(name).and_then(Value::as_str).map(clipped);
        let code = error.get("code").and_then(Value::as_u64);
        let status = code.and_then(|code| u16::try_from(code).ok());
        Self {
            message: word("message").unwrap_or_else(|| match error.as_str() {
                Some(text) => clipped(text),
                None => clipped(&error.to_string()),
            }),
            kind: word("type"),
            code: word("code"),
            named_status: status.filter(|status| (400..600).contains(status)),
            param: word("param"),
            context: context(error),
        }
    }
}

fn context(error: &Value) -> Option<Box<[Option<u64>; 2]>> {
    let lengths = ["n_prompt_tokens", "n_ctx"].map(|name| error.get(name)?.as_u64());
    lengths.iter().any(Option::is_some).then(|| Box::new(lengths))
}

fn clipped(text: &str) -> String {
    json::clip(text, MAX_MESSAGE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_every_backend_are_read() {
        let openai = br#"{"error":{"message":"no","type":"invalid_request_error","param":"stop","code":"bad"}}"#;
        let read = Failure::read(openai);
        assert_eq!(
            (read.message.as_str(), read.kind.as_deref()),
            ("no", Some("invalid_request_error"))
        );
        assert_eq!((read.param.as_deref(), read.code.as_deref()), (Some("stop"), Some("bad")));
        let llama =
            br#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#;
        assert_eq!(
            (Failure::read(llama).named_status, Failure::read(llama).code),
            (Some(503), None)
        );
        let anthropic = br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
        assert_eq!(Failure::read(anthropic).kind.as_deref(), Some("overloaded_error"));
        let texts: [(&[u8], &str); 7] = [
            (br#"{"error":"model not found"}"#, "model not found"),
            (
                br#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
                "too long",
            ),
            (br#"{"detail":"Not Found"}"#, "Not Found"),
            (br#"{"detail":[{"msg":"x"}]}"#, r#"[{"msg":"x"}]"#),
            (br#"{"error":null}"#, r#"{"error":null}"#),
            (b"Bad Gateway\n", "Bad Gateway"),
            (b"", "the backend gave no reason"),
        ];
        for (body, message) in texts {
            assert_eq!(Failure::read(body).message, message);
        }
    }

    #[test]
    fn long_errors_are_cut() {
        assert_eq!(Failure::read(&[b'x'; 9000]).message.len(), MAX_MESSAGE);
        let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(9000));
        assert_eq!(Failure::read(long.as_bytes()).message.len(), MAX_MESSAGE);
    }
}
