//! The web page: its files, and how people sign in at it.
//!
//! - `files`: its files
//! - `cookie`: the cookie of a session, and when it counts
//! - `session`: the holder of a browser's session, sign-in and sign-out; login codes
//! - `state`: the state that signing in needs

pub(crate) mod cookie;
pub(crate) mod files;
mod session;
pub(crate) mod state;

use access::{Holder, Key};
use axum::{
    Router,
    response::Response,
    routing::{get, post},
};
use http::{HeaderValue, header};
use protocol::admin::web::CODE;

use crate::state::Api;

/// The name of the server's owner.
const OWNER: &str = "owner";

/// The paths of signing in.
pub(crate) fn routes() -> Router<Api> {
    let session = get(session::show).post(session::sign_in).delete(session::sign_out);
    Router::new().route("/web/session", session).route(CODE, post(session::create_code))
}

/// The id of a holder's key, or `owner`.
pub(crate) fn holder_id(holder: &Holder) -> String {
    holder.key().map_or_else(|| OWNER.to_owned(), ToString::to_string)
}

/// The name of a key, or of the owner.
pub(crate) fn name_of(key: Option<&Key>) -> String {
    key.map_or_else(|| OWNER.to_owned(), |key| key.record().name)
}

/// Adds headers to an answer about a credential: no cache may keep it, and browsers must not take it for anything but
/// what its content type says.
fn kept_private(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
