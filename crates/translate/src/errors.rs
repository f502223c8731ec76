//! A backend's error for a client of OpenAI's APIs, which share one form.

use protocol::{
    failure::Failure,
    openai::{error_body, error_event},
};

/// What llama.cpp calls a prompt that is too long.
const CONTEXT_EXCEEDED: &str = "exceed_context_size_error";

/// The body of an answer with an error status.
pub(crate) fn body(status: u16, failure: &Failure) -> String {
    let param = failure.param.as_deref();
    error_body(&failure.message, kind(status, failure), param, code(failure))
}

/// The event that ends a stream of chat completions or completions.
pub(crate) fn event(failure: &Failure) -> String {
    let (status, param) = (failure.status(), failure.param.as_deref());
    error_event(&failure.message, kind(status, failure), param, code(failure))
}

/// The `code` of a failed response. Clients act on the one of a prompt that is too long.
pub(crate) fn response_code(failure: &Failure) -> &str {
    code(failure).unwrap_or(match failure.status() {
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_prompt",
        _ => "server_error",
    })
}

/// The backend's own word, which is OpenAI's as a rule.
fn kind(status: u16, failure: &Failure) -> &str {
    failure.kind.as_deref().filter(|kind| *kind != CONTEXT_EXCEEDED).unwrap_or(match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    })
}

fn code(failure: &Failure) -> Option<&str> {
    let too_long = failure.kind.as_deref() == Some(CONTEXT_EXCEEDED);
    if too_long { Some("context_length_exceeded") } else { failure.code.as_deref() }
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
            (429, "rate_limit_error"),
            (503, "server_error"),
        ] {
            let error = written(status, &json!({"error": "model not loaded"}));
            let expected =
                json!({"message": "model not loaded", "type": kind, "param": null, "code": null});
            assert_eq!(error, json!({"error": expected}));
        }
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
