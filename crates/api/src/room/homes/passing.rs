//! Requests on their way to a room's home, and their answers.

use std::sync::Arc;

use axum::{body::Body, extract::Request, response::Response};
use futures_util::{StreamExt, stream::unfold};
use http::{Method, StatusCode, Uri, request::Parts};
use rooms::KnownRoom;

use super::{PassedOn, refusal};
use crate::{
    cors, elsewhere,
    head::drop_hop_by_hop,
    paths::{path, split_room},
    shape::{self, Shape, in_room},
    state::{Api, Client, Peer},
};

/// Carries a request to the home of its room.
pub(in crate::room) async fn carry(
    api: &Api,
    room: &Arc<KnownRoom>,
    parts: Parts,
    body: Body,
) -> Response {
    let (uri, shape) = (parts.uri.clone(), shape_of(&parts.method, &parts.uri));
    let (client, peer) = (Client::of(&parts.extensions), Peer::of(&parts.extensions));
    let passed_on = PassedOn::new(room.id(), client, peer, api.rooms().tls);
    let Some(homes) = api.room_homes() else { return refusal::away(&uri, room, "it is stopping") };
    let request = Request::from_parts(parts, body);
    match homes.carry(room.home(), passed_on, request).await {
        Ok(response) => back(api, &uri, shape, response),
        Err(why) => refusal::away(&uri, room, &why),
    }
}

/// The API whose error event ends the answer's stream if it breaks off; `None` if the path is not an endpoint's.
fn shape_of(method: &Method, uri: &Uri) -> Option<&'static dyn Shape> {
    let (room, rest) = split_room(uri.path());
    let is_it = |shape: &&dyn Shape| shape.endpoint().path() == rest;
    let found = shape::first_at_each_path().find(is_it).filter(|_| *method == Method::POST)?;
    let in_room = || in_room::ALL.iter().find(|shape| shape.endpoint() == found.endpoint());
    match room.is_empty() {
        true => Some(found),
        false => in_room().map(|shape| shape as &dyn Shape),
    }
}

fn back(
    api: &Api,
    uri: &Uri,
    shape: Option<&'static dyn Shape>,
    mut response: Response,
) -> Response {
    cors::read_mark(&mut response);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return response;
    }
    if let Some(shape) = shape {
        return elsewhere::answer(shape, response);
    }
    drop_hop_by_hop(response.headers_mut());
    match path(uri).ends_with("/events") || uri.path().ends_with("/events") {
        true => response.map(|body| until_drain(api, body)),
        false => response,
    }
}

/// Ends an endless answer when this server drains, because it would hold up the drain.
fn until_drain(api: &Api, body: Body) -> Body {
    let from = (body.into_data_stream(), api.draining());
    Body::from_stream(unfold(from, async |(mut body, mut draining)| {
        let bytes = tokio::select! {
            // Bytes that have come already go out before the answer ends.
            biased;
            bytes = body.next() => bytes,
            // The wait fails only without a sender, which exists as long as the server.
            _ = draining.wait_for(|draining| *draining) => None,
        };
        Some((bytes?, (body, draining)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_apis_have_an_error_event_and_it_is_that_of_the_api() {
        let endpoint = |method: &Method, path: &'static str| {
            shape_of(method, &Uri::from_static(path)).map(|shape| shape.endpoint().path())
        };
        for path in ["/v1/messages", "/v1/chat/completions", "/api/chat"] {
            assert_eq!(endpoint(&Method::POST, path), Some(path));
        }
        let in_room = "/rooms/A/v1/responses?password=x";
        assert_eq!(endpoint(&Method::POST, in_room), Some("/v1/responses"));
        for path in ["/rooms/A/events", "/rooms/A/messages", "/v1/rooms/A", "/v1/models"] {
            assert_eq!(endpoint(&Method::POST, path), None, "{path}");
        }
        assert_eq!(endpoint(&Method::GET, "/v1/responses"), None);
    }
}
