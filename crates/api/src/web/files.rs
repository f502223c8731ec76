//! The files of the page. They have no routes: a path that no route has is looked for among them.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, Uri, header};

/// The longest code of a room with which a browser is led to the page, in bytes.
const MAX_CODE: usize = 64;

/// A file of the page, if a request asks for one. At `/` only a client that wants HTML asks for the page.
pub(crate) fn answer(uri: &Uri, method: &Method, headers: &HeaderMap) -> Option<Response> {
    let asks = matches!(*method, Method::GET | Method::HEAD);
    if !asks || headers.contains_key(header::UPGRADE) {
        return None;
    }
    match page::find(uri.path()) {
        Some(file) if file.is_index() && !wants_page(headers) => None,
        Some(file) => Some(file.answer(method, headers).map(Body::from)),
        None => to_room(uri.path()).filter(|_| wants_page(headers)),
    }
}

/// Leads a browser that follows the address of a room to the page for the room's guests. The new address is relative,
/// because behind a proxy the page may lie below another path. The answer does not tell whether the room exists.
fn to_room(path: &str) -> Option<Response> {
    let is_plain = |code: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=MAX_CODE).contains(&code.len()) && code.bytes().all(is_letter)
    };
    let code = path.strip_prefix("/rooms/").filter(is_plain)?;
    let headers =
        [(header::LOCATION, format!("../#room={code}")), (header::VARY, "accept".to_owned())];
    Some((StatusCode::SEE_OTHER, headers).into_response())
}

/// Whether a client says that it takes HTML, as browsers do.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|accept| {
        let accept = String::from_utf8_lossy(accept.as_bytes()).to_ascii_lowercase();
        accept.contains("text/html")
    })
}
