//! Rooms of a fleet: a request about a room whose home is a fellow is carried to the fellow whole, and the answer
//! comes back as it is.
//!
//! - [`PassedOn`]: the facts about a request that the server which the client reached states
//! - `named`: which room a request is about
//! - `passing`: requests on their way to another server, and their answers
//! - [`arrival`]: the same requests at their room's home
//! - `way`: the way to the other servers ([`RoomHomes`])
//! - `refusal`: why a request is not carried, in the form of its path

pub mod arrival;
mod named;
mod passed_on;
mod passing;
mod refusal;
pub(crate) mod way;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use base::ClientAddress;
use http::{header, request::Parts};
use rooms::{Caller, KnownRoom};

use self::named::RoomReference;
pub(super) use self::passing::carry;
pub use self::{passed_on::PassedOn, way::RoomHomes};
use super::access::{caller, from};
use crate::{admin, state::Api};

/// The same routes, but requests about a fellow's rooms are carried to the fellow.
pub fn with_homes(router: Router, api: Api) -> Router {
    router.layer(from_fn_with_state(api, pass_on))
}

async fn pass_on(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let named = named::of(&api, &mut parts).await;
    let (name, is_by_code) = match &named {
        None => return next.run(Request::from_parts(parts, body)).await,
        Some(RoomReference::Code(code)) => (code.as_str(), true),
        Some(RoomReference::Bound(room)) => (room.as_str(), false),
    };
    match (api.rooms().rooms.find_elsewhere(name, from(&parts)).await, is_by_code) {
        (Ok(None), _) => next.run(Request::from_parts(parts, body)).await,
        (Ok(Some(known)), true) => carry_for(&api, &known, caller_of(&parts), parts, body).await,
        (Ok(Some(known)), false) => carry(&api, &known, parts, body).await,
        (Err(error), _) => refusal::refusal(&parts.uri, admin::failed(&error)),
    }
}

/// Carries the request of a client that names a room by its code, unless the client has tried too many wrong codes.
async fn carry_for(
    api: &Api,
    known: &Arc<KnownRoom>,
    (from, token): (ClientAddress, Option<String>),
    parts: Parts,
    body: Body,
) -> Response {
    let caller = Caller { from, token: token.as_deref() };
    match api.rooms().rooms.may_pass(known, caller).await {
        Ok(()) => carry(api, known, parts, body).await,
        Err(refused) => refusal::refusal(&parts.uri, refused),
    }
}

fn caller_of(parts: &Parts) -> (ClientAddress, Option<String>) {
    let Caller { from, token } = caller(parts);
    (from, token.map(str::to_owned))
}

/// The answer to a message that names a room in its body, if the room's home is a fellow; `None` if it is not. `body`:
/// the message's body, which has been read and unpacked.
pub(super) async fn carry_message(
    api: &Api,
    parts: &Parts,
    name: &str,
    body: &[u8],
) -> Option<Response> {
    if api.room_homes().is_none() || parts.extensions.get::<Arc<PassedOn>>().is_some() {
        return None;
    }
    let known = match api.rooms().rooms.find_elsewhere(name, from(parts)).await {
        Ok(known) => known?,
        Err(error) => return Some(refusal::refusal(&parts.uri, admin::failed(&error))),
    };
    let (mut onward, body) = (parts.clone(), Body::from(body.to_vec()));
    // They tell of the body as it came. The way to the home sets the length.
    onward.headers.remove(header::CONTENT_ENCODING);
    onward.headers.remove(header::CONTENT_LENGTH);
    Some(carry_for(api, &known, caller_of(parts), onward, body).await)
}
