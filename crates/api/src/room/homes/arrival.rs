//! Requests that another server has passed on, at the home of their room. They are never passed on again.

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

use super::{PassedOn, refusal};
use crate::{cors, state::Api};

/// Answers a request for a room of this server with `router`, which passes nothing on: its handlers find the client as
/// the other server saw it. 503 if the room is not here any more.
pub async fn answer(
    api: &Api,
    router: Router,
    passed_on: PassedOn,
    mut request: Request,
) -> Response {
    if api.rooms().rooms.get(passed_on.room().as_str()).is_none() {
        return refusal::moved(request.uri());
    }
    passed_on.put(request.extensions_mut());
    // The router's error type has no values.
    let Ok(mut response) = router.oneshot(request).await;
    cors::write_mark(&mut response);
    response
}
