//! The key of a query, `?key=KEY`.

use axum::extract::Request;
use http::{HeaderName, HeaderValue, Uri, uri::PathAndQuery};

/// The header in which Google's clients send a key.
const HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

/// Moves a key from a request's query into the header for keys, so that it appears in no log and reaches no other
/// server.
pub(crate) fn settle(request: &mut Request) {
    let Some(query) = request.uri().query() else { return };
    let keys: Vec<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| is_key(name))
        .map(|(_, value)| value.into_owned())
        .collect();
    if keys.is_empty() {
        return;
    }
    *request.uri_mut() = without_key(request.uri());
    for key in keys {
        let Ok(mut value) = HeaderValue::try_from(key) else { continue };
        value.set_sensitive(true);
        // Added beside a header that is there: of several values the one with a key's form counts.
        request.headers_mut().append(HEADER, value);
    }
}

pub(super) fn is_key(name: &str) -> bool {
    matches!(name, "key" | "$key")
}

/// The parameter's name is compared decoded: it may be percent-encoded.
fn without_key(uri: &Uri) -> Uri {
    let is_kept = |pair: &&str| {
        let mut parsed = form_urlencoded::parse(pair.as_bytes());
        !parsed.next().is_some_and(|(name, _)| is_key(&name))
    };
    let others: Vec<&str> = uri.query().unwrap_or_default().split('&').filter(is_kept).collect();
    let query = if others.is_empty() { String::new() } else { format!("?{}", others.join("&")) };
    let mut parts = uri.clone().into_parts();
    // A path with some pairs of its query is still a valid path and query.
    parts.path_and_query = PathAndQuery::try_from(format!("{}{query}", uri.path())).ok();
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn settled(uri: &str, header: Option<&str>) -> (String, Vec<String>) {
        let mut request = Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header(HEADER, header);
        }
        let mut request = request.body(Body::empty()).unwrap();
        settle(&mut request);
        let keys = request.headers().get_all(HEADER).iter();
        let keys = keys.map(|key| key.to_str().unwrap().to_owned()).collect();
        (request.uri().to_string(), keys)
    }

    #[test]
    fn the_key_leaves_the_query() {
        for (uri, left, key) in [
            ("/v1beta/models?key=wk_1", "/v1beta/models", "wk_1"),
            ("/v1beta/models?alt=sse&key=wk%5f1&x=1", "/v1beta/models?alt=sse&x=1", "wk_1"),
            ("/v1beta/models?k%65y=a&alt=sse", "/v1beta/models?alt=sse", "a"),
            ("http://host:1/v1beta/models?$key=a", "http://host:1/v1beta/models", "a"),
        ] {
            assert_eq!(settled(uri, None), (left.to_owned(), vec![key.to_owned()]), "{uri}");
        }
        let both = settled("/v1beta/models?key=wk_1", Some("dummy"));
        assert_eq!(both.1, ["dummy", "wk_1"]);
        assert_eq!(settled("/x?alt=sse&keys=1", None), ("/x?alt=sse&keys=1".to_owned(), vec![]));
        assert_eq!(settled("/x?key=%0a", None), ("/x".to_owned(), vec![]), "no header has it");
    }
}
