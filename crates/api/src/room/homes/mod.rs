//! Rooms of several servers that act as one: a request about a room whose home is another server is carried there
//! whole, and its answer comes back as it is.
//!
//! - [`PassedOn`]: what the server that a client reached says of a request
//! - `named`: which room a request is about
//! - `passing`: requests on their way to another server, and their answers
//! - [`arrival`]: the same at the room's home
//! - `refusal`: why a request is not carried, in the form of its path

pub mod arrival;
mod named;
mod passed_on;
mod passing;
mod refusal;

use std::{future::Future, pin::Pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use base::ClientAddress;
use http::request::Parts;
use rooms::{Caller, KnownRoom, Place};
use store::RoomHome;

use self::named::Named;
pub use self::passed_on::PassedOn;
pub(super) use self::passing::carry;
use super::access::{caller, from};
use crate::{admin::blocking, state::Api};

/// The way to the other servers, among servers that act as one.
pub trait RoomHomes: Send + Sync {
    /// Carries a request to the home of its room. An error of the answer's body says in words why it broke off.
    ///
    /// # Errors
    /// Why the home cannot be reached, in words.
    fn carry(
        &self,
        home: &RoomHome,
        passed_on: PassedOn,
        request: Request,
    ) -> Pin<Box<dyn Future<Output = Result<Response, String>> + Send>>;
}

/// The same paths, whose requests about rooms of other servers are carried there.
pub fn with_homes(router: Router, api: Api) -> Router {
    router.layer(from_fn_with_state(api, pass_on))
}

async fn pass_on(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let named = named::of(&api, &mut parts).await;
    let (known, is_by_code) = match &named {
        None => (None, false),
        Some(Named::Code(code)) => (elsewhere(&api, code, from(&parts)).await, true),
        Some(Named::Bound(room)) => (elsewhere(&api, room.as_str(), from(&parts)).await, false),
    };
    let Some(known) = known else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    match is_by_code {
        true => carry_for(&api, &known, caller_of(&parts), parts.clone(), body).await,
        false => carry(&api, &known, parts, body).await,
    }
}

/// Carries the request of a client that names a room by its code, unless it has tried too many.
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

/// The room of this id or code, if its home is another server. A room that was made a moment ago is looked for in the
/// store.
async fn elsewhere(api: &Api, name: &str, from: ClientAddress) -> Option<Arc<KnownRoom>> {
    let rooms = &api.rooms().rooms;
    match rooms.place(name) {
        Place::Here(_) => return None,
        Place::There(known) => return Some(known),
        Place::Unknown if !rooms.may_be_new(name, from) => return None,
        Place::Unknown => {}
    }
    let (looking, looked_for) = (rooms.clone(), name.to_owned());
    let looked = blocking(move || looking.look_for(&looked_for)).await.ok()?;
    if let Err(error) = looked {
        tracing::debug!(%error, "a room could not be looked for");
    }
    match rooms.place(name) {
        Place::There(known) => Some(known),
        Place::Here(_) | Place::Unknown => None,
    }
}

/// The answer to a message about a room that the path does not name, if the room's home is another server. `body` is
/// what was read of the message.
pub(super) async fn carry_message(
    api: &Api,
    parts: &Parts,
    name: &str,
    body: &[u8],
) -> Option<Response> {
    if api.room_homes().is_none() || parts.extensions.get::<Arc<PassedOn>>().is_some() {
        return None;
    }
    let known = elsewhere(api, name, from(parts)).await?;
    let body = Body::from(body.to_vec());
    Some(carry_for(api, &known, caller_of(parts), parts.clone(), body).await)
}
