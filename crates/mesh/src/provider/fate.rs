//! The outcome of a job that a peer does not answer.

use http::StatusCode;
use protocol::{
    failure::MAX_MESSAGE,
    json::clip,
    mesh::cluster::{ErrorCode, InferenceError},
    openai::error_body,
};

/// The longest body of a backend's error that is passed on, in bytes.
const MAX_BODY: usize = 256 * 1024;

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It fails, by the peer's fault. If the answer has not begun, it may go to another provider.
    Fails(String),
    /// The job goes to another provider. If no other provider has the model, the client gets this error.
    PassedOn(StatusCode, String),
    /// The client gets what the peer's backend answered.
    Answered(StatusCode, String),
}

impl Fate {
    /// Decides by the peer's error. `begun` says that the client has got a part of the answer.
    pub(super) fn of(error: &InferenceError, begun: bool) -> Self {
        if begun {
            return Self::Fails(words(error));
        }
        if let Some((status, body)) = of_backend(error) {
            return Self::Answered(status, body);
        }
        let passed_on = |status, kind, code| {
            Self::PassedOn(status, error_body(&words(error), kind, None, Some(code)))
        };
        match error.code {
            Some(ErrorCode::QueueFull) => {
                passed_on(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "queue_full")
            }
            Some(ErrorCode::Unavailable) => {
                passed_on(StatusCode::SERVICE_UNAVAILABLE, "server_error", "unavailable")
            }
            Some(ErrorCode::ModelNotLoaded) => {
                passed_on(StatusCode::NOT_FOUND, "invalid_request_error", "model_not_found")
            }
            _ => Self::Fails(words(error)),
        }
    }
}

/// The backend's own error, if the peer has sent it.
fn of_backend(error: &InferenceError) -> Option<(StatusCode, String)> {
    let (status, body) = match error.status {
        Some(status) => (u16::try_from(status).ok()?, error.body.as_deref().unwrap_or_default()),
        None => refusal(&error.error_message)?,
    };
    let status = StatusCode::from_u16(status).ok().filter(|status| status.as_u16() >= 400)?;
    // The answer comes from this server's own address, so a page that a peer sends must not be
    // shown there. Only JSON is passed on.
    let is_json =
        body.len() <= MAX_BODY && serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok();
    let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    let in_words = || error_body(&words(error), kind, None, None);
    Some((status, if is_json { body.to_owned() } else { in_words() }))
}

/// Reads the status and body of a backend's refusal from a stock node's error message. A refusal is
/// the client's fault, not the node's. Returns `None` if the backend was busy or broken, since
/// another provider may do better.
fn refusal(message: &str) -> Option<(u16, &str)> {
    let (status, body) = message.strip_prefix("backend returned ")?.split_once(": ")?;
    let status = status.get(..3)?.parse().ok()?;
    ((400..500).contains(&status) && status != 429).then_some((status, body))
}

fn words(error: &InferenceError) -> String {
    let code = error.code.map_or("", ErrorCode::as_str);
    let said = clip(error.error_message.trim(), MAX_MESSAGE);
    match (code, said) {
        ("", "") => "the peer failed, and gave no reason".to_owned(),
        (code, "") => format!("the peer failed: {code}"),
        (_, said) => format!("the peer failed: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: Option<ErrorCode>) -> InferenceError {
        let (request_id, error_message) = ("a".into(), "boom".to_owned());
        InferenceError { request_id, error_message, code, status: None, body: None }
    }

    fn status(code: ErrorCode) -> Option<u16> {
        match Fate::of(&error(Some(code)), false) {
            Fate::PassedOn(status, _) => Some(status.as_u16()),
            _ => None,
        }
    }

    #[test]
    fn a_declined_request_goes_to_another_peer() {
        let passed = [ErrorCode::QueueFull, ErrorCode::Unavailable, ErrorCode::ModelNotLoaded];
        assert_eq!(passed.map(status), [Some(429), Some(503), Some(404)]);
        assert_eq!([ErrorCode::InternalError, ErrorCode::Timeout].map(status), [None, None]);
        let failed = Fate::Fails("the peer failed: boom".to_owned());
        assert_eq!(Fate::of(&error(None), false), failed);
        for code in ErrorCode::ALL {
            assert_eq!(Fate::of(&error(Some(code)), true), failed, "{code:?}");
        }
    }

    #[test]
    fn an_error_of_the_backend_reaches_the_client_as_it_is() {
        let of = |status, body: &str| {
            let body = Some(body.to_owned());
            Fate::of(&InferenceError { status: Some(status), body, ..error(None) }, false)
        };
        let too_long = r#"{"error":{"message":"too long"}}"#;
        assert_eq!(of(400, too_long), Fate::Answered(StatusCode::BAD_REQUEST, too_long.to_owned()));
        let Fate::Answered(StatusCode::BAD_GATEWAY, page) = of(502, "<html>") else { panic!() };
        assert!(page.starts_with(r#"{"error":{"message":"the peer failed: boom""#));
        for nonsense in [0, 99, 200, 302, 1_000, u32::MAX] {
            assert!(matches!(of(nonsense, too_long), Fate::Fails(_)), "{nonsense}");
        }
    }

    #[test]
    fn a_stock_node_says_in_words_that_its_backend_refused() {
        let of = |words: &str| {
            let error = InferenceError { error_message: words.to_owned(), ..error(None) };
            Fate::of(&error, false)
        };
        let body = r#"{"error":{"message":"too long: 9 of 8"}}"#;
        let refused = Fate::Answered(StatusCode::BAD_REQUEST, body.to_owned());
        assert_eq!(of(&format!("backend returned 400 Bad Request: {body}")), refused);
        let words = ["429 Too Many Requests", "500 Internal Server Error", "200 OK", "é", "40", ""];
        for status in words {
            let fate = of(&format!("backend returned {status}: {body}"));
            assert!(matches!(fate, Fate::Fails(_)), "{status}: {fate:?}");
        }
    }

    #[test]
    fn a_peers_words_are_bounded() {
        let long = InferenceError { error_message: "é".repeat(9_000), ..error(None) };
        let Fate::Fails(words) = Fate::of(&long, false) else { panic!() };
        assert!(words.len() < MAX_MESSAGE + 40);
    }
}
