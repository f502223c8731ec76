//! A request in one form for all protocols.

use std::borrow::Cow;

use base::Endpoint;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use protocol::relay::{HeaderFields, Request, RequestHead, header_bytes};

/// Why a request is declined whose path or method is not lent.
pub(crate) const NOT_SERVED: &str =
    "workers serve only the known requests to models below /v1/, such as POST /v1/chat/completions";

/// The request of a job that was accepted. Its body is complete once the job starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The server's number in the binary form; otherwise one that this worker gives.
    pub(crate) number: u32,
    pub(crate) request_id: String,
    pub(crate) model: String,
    pub(crate) method: Method,
    /// With the query.
    pub(crate) path: String,
    pub(crate) streaming: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<Bytes>,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            number: 0,
            request_id: String::new(),
            model: String::new(),
            method: Method::POST,
            path: String::new(),
            streaming: false,
            headers: HeaderMap::new(),
            body: Vec::new(),
        }
    }
}

impl Order {
    pub(crate) fn from_request(number: u32, request: Request) -> Self {
        Self {
            number,
            headers: headers(&request.headers),
            request_id: request.request_id,
            model: request.model,
            path: request.endpoint_path,
            streaming: request.is_streaming,
            body: vec![Bytes::from(request.body)],
            ..Self::default()
        }
    }

    /// An order whose body is still to come.
    pub(crate) fn from_head(number: u32, head: RequestHead) -> Self {
        Self {
            number,
            headers: of_fields(&head.headers),
            request_id: head.request_id,
            model: head.model,
            path: head.endpoint_path,
            streaming: head.is_streaming,
            ..Self::default()
        }
    }

    /// Whether its method and path are lent: the requests to models that are known, and what belongs to earlier
    /// answers. The paths by which a model server is administered are not, and some of them are below
    /// `/v1/` too, such as vLLM's `/v1/load_lora_adapter`.
    pub(crate) fn is_served(&self) -> bool {
        let path = self.path.split(['?', '#']).next().unwrap_or_default();
        let path = plain(path);
        let mut parts = path.split(['/', '\\']);
        // Backends differ in how they resolve `..`, so no path with it is passed on.
        path.starts_with("/v1/") && !parts.any(|part| part == "..") && self.may_ask(&path)
    }

    /// Whether this method may be used at the path: `POST` for the known endpoints and earlier answers, `GET` for
    /// models and earlier answers, `DELETE` for earlier answers.
    fn may_ask(&self, path: &str) -> bool {
        let answer = path.starts_with("/v1/responses/");
        match self.method {
            Method::POST => answer || Endpoint::of_path(path.trim_end_matches('/')).is_some(),
            Method::GET => answer || path == "/v1/models" || path.starts_with("/v1/models/"),
            Method::DELETE => answer,
            _ => false,
        }
    }
}

/// A path in lower case, in which encoded dots, slashes and backslashes are decoded.
fn plain(path: &str) -> Cow<'_, str> {
    if path.bytes().all(|byte| byte != b'%' && !byte.is_ascii_uppercase()) {
        return path.into();
    }
    let path = path.to_ascii_lowercase();
    path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").into()
}

/// The headers that can be sent. Their values share the memory of the fields.
fn of_fields(fields: &HeaderFields) -> HeaderMap {
    let values = fields.iter().map(|(name, value)| {
        (HeaderName::from_bytes(name), HeaderValue::from_maybe_shared(fields.share(value)))
    });
    sendable(values)
}

/// The headers that can be sent.
pub(crate) fn headers<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> HeaderMap {
    sendable(pairs.into_iter().map(|(name, value)| {
        (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(&header_bytes(value)))
    }))
}

/// Drops headers whose name or value cannot be sent.
fn sendable<N, V>(
    pairs: impl Iterator<Item = (Result<HeaderName, N>, Result<HeaderValue, V>)>,
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        if let (Ok(name), Ok(value)) = (name, value) {
            // Headers beyond the map's own bound are dropped as well.
            let _ = headers.try_append(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_consumer_apis_are_served() {
        let served = |path: &str| Order { path: path.to_owned(), ..Order::default() }.is_served();
        for good in [
            "/v1/chat/completions",
            "/v1/embeddings?y=/../z",
            "/v1/audio/speech",
            "/v1/messages/count_tokens",
            "/v1/responses/r1/cancel",
            "/v1/responses/a..b",
            "/v1/Completions/",
        ] {
            assert!(served(good), "{good}");
        }
        for bad in [
            "",
            "v1/completions",
            "/v1",
            "/v1/load_lora_adapter",
            "/v1/unload%5Flora_adapter",
            "/v1/models",
            "/v1/models/a..b",
            "/v1/completions/x",
            "/v1beta/models:generateContent",
            "/api/chat",
            "/api/delete",
            "/v1/../api/delete",
            "/v1/%2E%2e/api/delete",
            "/v1/..%2fapi",
            "/v1/..\\api",
            "//v1/completions",
        ] {
            assert!(!served(bad), "{bad}");
        }
    }

    #[test]
    fn other_methods_reach_models_and_earlier_answers_only() {
        let served = |method: Method, path: &str| {
            Order { method, path: path.to_owned(), ..Order::default() }.is_served()
        };
        for path in ["/v1/models", "/v1/models/a/b", "/v1/responses/r1?include=x"] {
            assert!(served(Method::GET, path), "{path}");
        }
        assert!(served(Method::DELETE, "/v1/responses/r1"));
        assert!(!served(Method::DELETE, "/v1/models/m"));
        assert!(!served(Method::DELETE, "/v1/responses/../models/m"));
        assert!(!served(Method::GET, "/v1/files"));
        assert!(!served(Method::PUT, "/v1/responses/r1"));
    }

    #[test]
    fn headers_that_cannot_be_sent_are_dropped_and_repeats_kept() {
        let pairs = [("a", "1"), ("a", "caf\u{e9}"), ("b c", "1"), ("d", "x\ny"), ("", "1")];
        let fields = pairs.map(|(name, value)| (name, header_bytes(value))).into_iter().collect();
        let head = RequestHead { headers: fields, ..RequestHead::default() };
        let order = Order::from_head(1, head);
        assert_eq!(order.headers.len(), 2);
        let values: Vec<_> = order.headers.get_all("a").iter().map(|v| v.as_bytes()).collect();
        assert_eq!(values, [&b"1"[..], b"caf\xe9"]);
    }
}
