//! The web page: its files, and how people sign in at it.
//!
//! - `files`: its files
//! - `cookie`: the cookie of a session, and when it counts
//! - `session`: tells who is signed in, signs a browser in, and signs it out
//! - `code`: `POST /web/code`: login codes
//! - `state`: what signing in needs
//! - `told`: how holders of sessions are named, and answers about credentials sent

mod code;
pub(crate) mod cookie;
pub(crate) mod files;
mod session;
pub(crate) mod state;
pub(crate) mod told;

use axum::{
    Router,
    routing::{get, post},
};
use protocol::admin::web::CODE;

use crate::state::Api;

/// The paths of signing in.
pub(crate) fn routes() -> Router<Api> {
    let session = get(session::show).post(session::sign_in).delete(session::sign_out);
    Router::new().route("/web/session", session).route(CODE, post(code::create))
}
