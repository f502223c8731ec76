//! Why a request is not carried to its room's home, in the form of its path.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{StatusCode, Uri};
use protocol::room::plane::ErrorCode;
use rooms::KnownRoom;

use crate::{
    error::{ApiError, Kind},
    head::new_id,
    paths::split_room,
    room::failure::Failure,
    shape,
};

/// The `retry-after` of these errors: by then another server is the room's home, or the home can be reached again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// The error for a room whose home cannot be reached.
pub(super) fn away(uri: &Uri, room: &KnownRoom, why: &str) -> Response {
    let home = &room.home().server;
    tracing::info!(room = %room.id(), %home, why, "a request is not carried to its room");
    unavailable(
        uri,
        format!(
            "The server {home}, which this room is at, cannot be reached now ({why}). Another server takes the \
             room over within seconds."
        ),
    )
}

/// The error for a request that another server passed on to this one, which is no longer the room's home, or not yet.
pub(super) fn moved(uri: &Uri) -> Response {
    unavailable(uri, "The room is moving to another server.".to_owned())
}

fn unavailable(uri: &Uri, words: String) -> Response {
    let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, words);
    refusal(uri, failure.hint("Try again in a moment.").retry_after(TRY_AGAIN))
}

/// An error in the form that the errors of this path have.
pub(super) fn refusal(uri: &Uri, failure: impl Into<Failure>) -> Response {
    let (failure, path) = (failure.into(), uri.path());
    let below = |root: &str| {
        let rest = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match () {
        () if below("/v1/rooms") => failure.into_response(),
        () if split_room(path).1 == "/messages" || below("/events") => failure.message(),
        () if below("/rooms") => failure.plain(),
        () => plain_path(path, &failure),
    }
}

/// The same in the form of an API's path, which a request with a key that is bound to a room can have.
fn plain_path(path: &str, failure: &Failure) -> Response {
    let error = ApiError::new(failure.status, Kind::of_status(failure.status), failure.text());
    let error = ApiError { retry_after: failure.wait(), ..error };
    error.response(shape::of_path(path), new_id())
}

#[cfg(test)]
mod tests {
    use http::header;
    use serde_json::Value;

    use super::*;

    async fn refusal_at(path: &'static str) -> Value {
        let response = moved(&Uri::from_static(path));
        assert_eq!(
            (response.status().as_u16(), &response.headers()[header::RETRY_AFTER]),
            (503, &"2".parse().unwrap())
        );
        let body = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn each_path_has_its_form_and_all_say_when_to_try_again() {
        let words = "The room is moving to another server";
        let is_it = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(words));
        assert!(is_it(&refusal_at("/v1/rooms/A/participants").await["error"]["message"]));
        assert!(is_it(&refusal_at("/rooms/A/v1/chat/completions").await["error"]));
        assert!(is_it(&refusal_at("/rooms/A/events").await["error"]));
        let message = refusal_at("/messages").await;
        assert!(is_it(&message["error"]) && message["type"] == "room:error");
        assert!(is_it(&refusal_at("/v1/chat/completions").await["error"]["message"]));
        let anthropic = refusal_at("/v1/messages").await;
        assert_eq!(anthropic["type"], "error");
    }
}
