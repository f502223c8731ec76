//! How holders of sessions are named, and how answers about credentials are sent.

use access::{Holder, Key};
use axum::response::Response;
use http::{HeaderValue, header};

/// The name of the server's owner.
const OWNER: &str = "owner";

/// The id of a holder's key, or `owner`.
pub(crate) fn holder_id(holder: &Holder) -> String {
    holder.key().map_or_else(|| OWNER.to_owned(), ToString::to_string)
}

/// The name of a key, or of the owner.
pub(crate) fn name_of(key: Option<&Key>) -> String {
    key.map_or_else(|| OWNER.to_owned(), |key| key.record().name)
}

/// Has no cache keep an answer about a credential, and no browser take it for anything but JSON.
pub(super) fn kept_private(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
