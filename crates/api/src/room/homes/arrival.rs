//! Requests that another server has passed on, at the home of their room. They are never passed on again.

use axum::{extract::Request, response::Response};

use super::{PassedOn, refusal};
use crate::{cors, state::Api};

/// Admits a request for a room of this server: its handlers find the client as the other server saw it.
///
/// # Errors
/// The answer, if the room is not here any more.
pub fn arrive(api: &Api, passed_on: PassedOn, mut request: Request) -> Result<Request, Response> {
    let room = passed_on.room();
    if api.rooms().rooms.get(room.as_str()).is_none() {
        return Err(refusal::moved(request.uri()));
    }
    passed_on.put(request.extensions_mut());
    Ok(request)
}

/// Makes an answer ready for its way back.
pub fn send_back(mut response: Response) -> Response {
    cors::write_mark(&mut response);
    response
}
