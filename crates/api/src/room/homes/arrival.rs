//! Requests that another server has passed on, at the home of their room. They are never passed on again.

use std::sync::Arc;

use axum::{Router, extract::Request, response::Response};
use tower::ServiceExt;

use super::{PassedOn, refusal};
use crate::{
    cors,
    state::{Api, Client},
};

/// Answers a request for a room of this server by `router`, which must pass no request on. Its handlers find the
/// client as the other server saw it. The answer is 503 if the room is not at this server any more.
pub async fn answer(
    api: &Api,
    router: Router,
    passed_on: PassedOn,
    mut request: Request,
) -> Response {
    if api.rooms().rooms.get(&passed_on.room).is_none() {
        return refusal::moved(request.uri());
    }
    let client = Client { address: passed_on.address(), peer: passed_on.peer };
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Arc::new(passed_on));
    // The router's error type has no values.
    let Ok(mut response) = router.oneshot(request).await;
    cors::write_mark(&mut response);
    response
}
