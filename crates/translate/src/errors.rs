//! A backend's error in the words and codes of the client's API. Agents act on them: on a prompt that is
//! too long, too many requests, or an overloaded server.

use std::borrow::Cow;

use base::Endpoint;
use protocol::{
    anthropic,
    failure::Failure,
    gemini::{self, Problem},
    openai::{error_body, error_event},
};

/// OpenAI's code for a prompt that is too long.
const TOO_LONG: &str = "context_length_exceeded";

/// The body of an error for a client of this endpoint. `None` if the backend's own body can be passed
/// on: it is not about a prompt that is too long, or says so in the words of this API already.
pub fn api_error(endpoint: Endpoint, status: u16, body: &[u8], request_id: &str) -> Option<String> {
    let failure = Failure::read(body);
    failure.overflow()?;
    match endpoint {
        Endpoint::Messages => {
            let (kind, message) = for_messages(status, &failure);
            let known = failure.kind.as_deref() == Some(kind) && failure.message == message;
            (!known).then(|| anthropic::error_body(kind, &message, request_id))
        }
        Endpoint::ChatCompletions | Endpoint::Completions | Endpoint::Responses => {
            let known = failure.code.as_deref() == Some(TOO_LONG);
            (!known).then(|| self::body(status, &failure))
        }
        _ => None,
    }
}

/// The type and the message of an error in Messages.
pub(crate) fn for_messages(status: u16, failure: &Failure) -> (&'static str, Cow<'_, str>) {
    match failure.overflow() {
        Some(overflow) => {
            let message = overflow.in_anthropics_words(&failure.message);
            (anthropic::error_kind(400), message.into())
        }
        None => (anthropic::error_kind(status), failure.message.as_str().into()),
    }
}

/// The body of an error in Gemini's API, which is also an element of its streams.
pub(crate) fn for_gemini(status: u16, failure: &Failure) -> String {
    let field = failure.param.as_deref();
    let words = failure.overflow().map(|overflow| overflow.in_googles_words(&failure.message));
    let status = if words.is_some() { 400 } else { status };
    let message = words.as_deref().unwrap_or(&failure.message);
    let problem = Problem { status, message, field, retry_after: None };
    gemini::error_body(&problem)
}

/// The body of an answer with an error status.
pub(crate) fn body(status: u16, failure: &Failure) -> String {
    let param = failure.param.as_deref();
    error_body(&failure.message, kind(status, failure), param, code(status, failure))
}

/// The event that ends a stream of chat completions or completions.
pub(crate) fn event(failure: &Failure) -> String {
    let (status, param) = (failure.status(), failure.param.as_deref());
    error_event(&failure.message, kind(status, failure), param, code(status, failure))
}

/// The `code` of a failed response. Clients act on the code for a prompt that is too long.
pub(crate) fn response_code(failure: &Failure) -> &str {
    let status = failure.status();
    code(status, failure).unwrap_or(match status {
        400..=499 => "invalid_prompt",
        _ => "server_error",
    })
}

/// The type of an error: the backend's own, if it is likely to be OpenAI's.
fn kind(status: u16, failure: &Failure) -> &str {
    if failure.overflow().is_some() {
        return "invalid_request_error";
    }
    let own =
        failure.kind.as_deref().filter(|kind| !matches!(*kind, "overloaded_error" | "api_error"));
    own.unwrap_or(match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    })
}

fn code(status: u16, failure: &Failure) -> Option<&str> {
    let own = || failure.code.as_deref();
    let kind = failure.kind.as_deref();
    match status {
        _ if failure.overflow().is_some() => Some(TOO_LONG),
        429 if kind == Some("insufficient_quota") => own().or(kind),
        429 => own().or(Some("rate_limit_exceeded")),
        529 => own().or(Some("server_is_overloaded")),
        _ if kind == Some("overloaded_error") => own().or(Some("server_is_overloaded")),
        _ => own(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(status: u16, error: &Value) -> Value {
        let failure = Failure::read(error.to_string().as_bytes());
        serde_json::from_str(&body(status, &failure)).unwrap()
    }

    #[test]
    fn the_backends_own_words_stay() {
        let error =
            json!({"error": {"message": "no", "type": "bad", "param": "stop", "code": "x"}});
        assert_eq!(written(400, &error), error);
    }

    #[test]
    fn a_missing_word_follows_from_the_status() {
        for (status, kind) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (403, "permission_error"),
            (404, "invalid_request_error"),
            (503, "server_error"),
        ] {
            let error = written(status, &json!({"error": "model not loaded"}));
            let expected =
                json!({"message": "model not loaded", "type": kind, "param": null, "code": null});
            assert_eq!(error, json!({"error": expected}));
        }
    }

    #[test]
    fn clients_are_told_to_wait_in_openais_words() {
        let words = |status, error: Value| {
            let error = written(status, &error);
            (error["error"]["type"].clone(), error["error"]["code"].clone())
        };
        let anthropic =
            |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "wait"}});
        let limited = (json!("rate_limit_error"), json!("rate_limit_exceeded"));
        assert_eq!(words(429, anthropic("rate_limit_error")), limited);
        assert_eq!(words(429, json!({"error": "slow down"})), limited);
        let used_up =
            json!({"error": {"message": "no", "type": "insufficient_quota", "code": null}});
        assert_eq!(words(429, used_up).1, "insufficient_quota");
        for status in [503, 529] {
            let overloaded = (json!("server_error"), json!("server_is_overloaded"));
            assert_eq!(words(status, anthropic("overloaded_error")), overloaded, "{status}");
        }
        let failure = Failure::read(anthropic("overloaded_error").to_string().as_bytes());
        assert_eq!(response_code(&failure), "server_is_overloaded");
        let failure = Failure::read(br#"{"error":{"message":"x","code":"rate_limit_exceeded"}}"#);
        assert_eq!(for_messages(failure.status(), &failure).0, "rate_limit_error");
    }

    #[test]
    fn an_error_in_the_words_of_its_api_stays_as_it_is() {
        let restated = |endpoint, error: Value| {
            let text = api_error(endpoint, 400, error.to_string().as_bytes(), "r-1")?;
            Some(serde_json::from_str::<Value>(&text).unwrap()["error"].clone())
        };
        let vllm = json!({"message": "This model's maximum context length is 8 tokens. However, your request has 9 input tokens.", "type": "BadRequestError", "code": 400});
        let words = "prompt is too long: 9 tokens > 8 maximum";
        let expected = json!({"type": "invalid_request_error", "message": words});
        assert_eq!(restated(Endpoint::Messages, vllm.clone()), Some(expected));
        for endpoint in [Endpoint::ChatCompletions, Endpoint::Completions, Endpoint::Responses] {
            let error = restated(endpoint, vllm.clone()).unwrap();
            assert_eq!((&error["code"], &error["message"]), (&json!(TOO_LONG), &vllm["message"]));
            let openai = json!({"error": {"message": "x", "code": TOO_LONG}});
            assert_eq!(restated(endpoint, openai), None);
            assert_eq!(restated(endpoint, json!({"error": "no such model"})), None);
        }
        let anthropic =
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}});
        assert_eq!(restated(Endpoint::Messages, anthropic), None);
        assert_eq!(restated(Endpoint::Embeddings, vllm), None);
    }

    #[test]
    fn a_prompt_that_is_too_long_is_told_in_openais_word() {
        let llama = json!({"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 4096}});
        let error = written(400, &llama);
        assert_eq!(error["error"]["code"], "context_length_exceeded");
        assert_eq!(error["error"]["type"], "invalid_request_error");
        let failure = Failure::read(llama.to_string().as_bytes());
        assert_eq!(response_code(&failure), "context_length_exceeded");
        assert_eq!(response_code(&Failure::new("gone")), "server_error");
    }
}
