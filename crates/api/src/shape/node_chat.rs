//! The node protocol's consumer side: JSON values, one a line.

use base::{Endpoint, JobId};
use http::{HeaderMap, HeaderValue, header};
use protocol::{json, ollama::Peek, sse::Boundary};
use serde::Serialize;
use translate::node_chat::{INVALID, UNKNOWN_MODEL};

use super::{Shape, ollama::Ollama};
use crate::error::{ApiError, Kind};

pub(super) struct NodeChat;

/// An error: `err` is the word that stock clients know, and `message` gives the details. In the body of an error
/// response, `error` repeats the message for clients of Ollama's API, which share the path.
#[derive(Serialize)]
struct ErrorLine<'a> {
    err: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl ErrorLine<'_> {
    fn write(&self) -> String {
        let mut line = json::write(self);
        // Stock clients read whole lines only.
        line.push('\n');
        line
    }
}

impl<'a> ErrorLine<'a> {
    fn of(error: &'a ApiError) -> Self {
        let message = &*error.message;
        match stock_word(error) {
            Some(err) => Self { err, message: Some(message), error: None },
            None => Self { err: message, message: None, error: None },
        }
    }
}

impl Shape for NodeChat {
    fn endpoint(&self) -> Endpoint {
        Endpoint::NodeChat
    }

    fn error_body(&self, error: &ApiError, _: JobId) -> String {
        ErrorLine { error: Some(&*error.message), ..ErrorLine::of(error) }.write()
    }

    fn error_event(&self, error: &ApiError, _: JobId, _: u64) -> String {
        ErrorLine::of(error).write()
    }

    /// An empty line, which stock clients ignore.
    fn keepalive(&self) -> &'static [u8] {
        b"\n"
    }

    fn comment(&self, _: &str) -> Option<String> {
        None
    }

    fn waiting(&self, _: &str) -> String {
        "\n".to_owned()
    }

    fn may_add(&self, at: &Boundary) -> bool {
        at.at_line_start()
    }

    fn closing(&self, at: &Boundary) -> &'static [u8] {
        if at.at_line_start() { b"" } else { b"\n" }
    }

    fn always_streams(&self) -> bool {
        true
    }

    /// Stock pages declare their JSON as `text/plain`, and people as a form.
    fn says_json(&self) -> bool {
        false
    }

    fn of_body(&self, body: &[u8]) -> Option<&'static dyn Shape> {
        let is_ollamas = Peek::read(body).is_some_and(|peek| !peek.is_node);
        is_ollamas.then_some(&Ollama(Endpoint::OllamaChat))
    }

    /// Stock pages send the bare token, without `Bearer`.
    fn adapt(&self, headers: &mut HeaderMap) {
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bare = given.filter(|given| !given.trim().contains(' '));
        let bearer = bare.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        if let Some(mut bearer) = bearer {
            bearer.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, bearer);
        }
    }
}

/// The word of stock servers, if they have one.
fn stock_word(error: &ApiError) -> Option<&'static str> {
    match (error.kind, error.code) {
        (Kind::Authentication | Kind::Permission, _) => Some("unauthorized"),
        (Kind::NotFound, _) => Some(UNKNOWN_MODEL),
        (Kind::Invalid | Kind::TooLarge, _) => Some(INVALID),
        (Kind::Timeout, Some("queue_timeout" | "busy_timeout")) => Some("timeout waiting for node"),
        (Kind::Timeout, Some("request_timeout" | "idle_timeout")) => {
            Some("timeout waiting for finish")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn text(error: &ApiError) -> String {
        NodeChat.error_body(error, JobId::from_random(0))
    }

    #[test]
    fn errors_have_the_stock_words_and_ours_where_there_is_none() {
        let unknown = ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, "no provider for \"m\"");
        assert_eq!(
            text(&unknown),
            "{\"err\":\"unknown model\",\"message\":\"no provider for \\\"m\\\"\",\
             \"error\":\"no provider for \\\"m\\\"\"}\n"
        );
        let full = ApiError::new(StatusCode::TOO_MANY_REQUESTS, Kind::Overload, "queue full");
        assert_eq!(text(&full), "{\"err\":\"queue full\",\"error\":\"queue full\"}\n");
        let line = NodeChat.error_event(&full, JobId::from_random(0), 0);
        assert_eq!(line, "{\"err\":\"queue full\"}\n");
    }

    #[test]
    fn a_bare_token_is_read_as_a_bearers() {
        for (given, read) in
            [("t", "Bearer t"), ("Bearer t", "Bearer t"), ("Basic dDp0", "Basic dDp0")]
        {
            let value = HeaderValue::from_static(given);
            let mut headers: HeaderMap = [(header::AUTHORIZATION, value)].into_iter().collect();
            NodeChat.adapt(&mut headers);
            assert_eq!(headers[header::AUTHORIZATION], read);
        }
    }
}
