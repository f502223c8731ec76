//! The files of the page. They have no routes: what no API has at a path is looked for among them.

use axum::{body::Body, response::Response};
use http::{HeaderMap, Method, Uri, header};

/// A file of the page, if a request asks for one. At `/` only a client that wants HTML does.
pub(crate) fn answer(uri: &Uri, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asks = matches!(*method, Method::GET | Method::HEAD);
    if !asks || headers.contains_key(header::UPGRADE) {
        return None;
    }
    let file = page::find(uri.path())?;
    let is_wanted = !file.is_index() || wants_page(headers);
    is_wanted.then(|| file.answer(method, headers).map(Body::from))
}

/// Whether a client names HTML among what it takes, as browsers do.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|accept| {
        let accept = String::from_utf8_lossy(accept.as_bytes()).to_ascii_lowercase();
        accept.contains("text/html")
    })
}
