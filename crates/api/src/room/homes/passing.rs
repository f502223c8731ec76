//! Requests on their way to a room's home, and their answers.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    response::Response,
};
use http::{HeaderName, Method, StatusCode, Uri, request::Parts};
use http_body::{Frame, SizeHint};
use protocol::headers::is_hop_by_hop;
use rooms::KnownRoom;

use super::{PassedOn, refusal};
use crate::{
    cors, elsewhere,
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

/// The API whose error event ends a stream that breaks off.
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
    let headers = response.headers_mut();
    let connection: Vec<HeaderName> =
        headers.keys().filter(|name| is_hop_by_hop(name.as_str())).cloned().collect();
    connection.iter().for_each(|name| drop(headers.remove(name)));
    match path(uri).ends_with("/events") || uri.path().ends_with("/events") {
        true => response.map(|body| Body::new(UntilDrain::new(api, body))),
        false => response,
    }
}

/// An endless answer, which ends when this server drains: it would hold up the drain.
struct UntilDrain {
    body: Body,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl UntilDrain {
    fn new(api: &Api, body: Body) -> Self {
        let mut draining = api.draining();
        let draining = async move {
            // The sender is gone only with the server.
            let _ = draining.wait_for(|draining| *draining).await;
        };
        Self { body, draining: Box::pin(draining), is_over: false }
    }
}

impl http_body::Body for UntilDrain {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_ready() || self.draining.as_mut().poll(cx).is_pending() {
            return frame;
        }
        self.is_over = true;
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
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
