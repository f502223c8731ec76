//! Rooms over HTTP: the API that stock clients manage them with, the spec's messages, the streams of
//! events, and the inference of their participants.
//!
//! - `access`: who may do what
//! - `plane`: `/v1/rooms…`, with its envelopes
//! - `messages`: the spec's messages, posted and answered
//! - `ask`: the answer to an `llm:request`, sent on as it arrives
//! - `events`: the streams of events; `stream`: such a stream as a body; `watchers`: bounds on
//!   their number
//! - `inference`: `/rooms/{code}/v1/…`
//! - [`homes`]: rooms whose home is a fellow
//! - `failure`: the errors of rooms, and their forms
//! - [`MessageJobs`]: jobs that came as messages

pub(crate) mod access;
mod ask;
mod events;
mod failure;
pub mod homes;
pub(crate) mod inference;
pub(crate) mod message_jobs;
mod messages;
mod plane;
mod stream;
pub(crate) mod watchers;

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{Uri, request::Parts};

use self::failure::Failure;
pub use self::{
    homes::{PassedOn, RoomHomes},
    message_jobs::MessageJobs,
};
use crate::{read, state::Api, uploads::HeldMemory};

/// The largest body of a request that is not for inference, in bytes.
const MAX_BODY: usize = 1 << 20;

/// All paths of rooms except a participant's tunnel, which belongs to the providers.
pub(crate) fn router() -> Router<Api> {
    Router::new()
        .merge(plane::routes())
        .merge(messages::routes())
        .merge(events::routes())
        .merge(inference::routes())
}

/// The answer to a path or method that rooms do not have; `None` for paths that do not belong to rooms.
pub(crate) fn no_route(uri: &Uri) -> Option<Response> {
    let below = |root: &str| {
        let rest = uri.path().strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match () {
        () if below("/v1/rooms") || below("/v1/health") => {
            Some(Failure::no_route().into_response())
        }
        () if below("/rooms") => Some(Failure::no_route().plain()),
        () if below("/messages") || below("/events") => Some(Failure::no_route().message()),
        () => None,
    }
}

/// Reads a body that is not for inference. Returns it with the memory that it holds.
async fn read_body(
    api: &Api,
    parts: &Parts,
    mut body: Body,
) -> Result<(Bytes, HeldMemory), Failure> {
    let mut held = api.uploads().hold();
    match read::read(&parts.headers, &mut body, MAX_BODY, &mut held).await {
        Ok(read) => Ok((read, held.take())),
        Err(error) => {
            read::discard(&parts.headers, body).await;
            Err(error.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_paths_of_rooms_are_answered_as_theirs() {
        let status = |path: &'static str| {
            no_route(&Uri::from_static(path)).map(|response| response.status().as_u16())
        };
        for path in ["/v1/rooms/A/nothing", "/v1/health/x", "/rooms/A", "/messages", "/events"] {
            assert_eq!(status(path), Some(404), "{path}");
        }
        for path in ["/", "/v1/roomsA", "/v1/messages/x", "/eventsA"] {
            assert_eq!(status(path), None, "{path}");
        }
    }
}
