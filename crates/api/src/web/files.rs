//! The files of the page. They have no routes: what no API has at a path is looked for among them.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, StatusCode, Uri, header};

/// The longest code of a room that a browser is led to the page with, in bytes.
const MAX_CODE: usize = 64;

/// A file of the page, if a request asks for one. At `/` only a client that wants HTML does.
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

/// Leads a browser that follows the address of a room to the page for the room's guests. The address is relative,
/// since the page may lie below a path of a proxy's. Whether there is such a room is not told.
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

/// Whether a client names HTML among what it takes, as browsers do.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|accept| {
        let accept = String::from_utf8_lossy(accept.as_bytes()).to_ascii_lowercase();
        accept.contains("text/html")
    })
}
