//! Requests of keys whose models are at other servers, and their answers.
//!
//! Another server's answer passes as it comes: that server counts it, and keeps a stream alive. Only
//! where the way to it breaks, the API's own error event is added here.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base::{JobId, KeyId, Scope};
use bytes::Bytes;
use http::{Request, StatusCode, request::Parts};
use http_body::{Frame, SizeHint};
use protocol::{failure::PassedStream, sse::StreamEnd};

use crate::{
    body::{BrokenOff, Polled},
    error::{ApiError, Kind},
    head::{self, is_plain_event_stream, new_id},
    refuse::refuse,
    shape::Shape,
    state::Api,
};

/// A future of these traits: boxed, so that they can be used as objects.
type Future<Output> = Pin<Box<dyn std::future::Future<Output = Output> + Send>>;

/// Says at which other servers the models of some keys are.
pub trait Elsewhere: Send + Sync {
    /// Whether the model of this key may be elsewhere. Called for each request.
    fn is_for(&self, key: &KeyId) -> bool;

    /// The way to the server that has the model of this key; `None` if this server has it, or none is known.
    ///
    /// # Errors
    /// The client's error, if no server has it or that server cannot be reached.
    fn find(&self, key: &KeyId) -> Future<Result<Option<Box<dyn Way>>, ApiError>>;
}

/// The way to another server, for one request.
pub trait Way: Send {
    /// Carries the request to that server. An error of the answer's body says in words why it broke off.
    ///
    /// # Errors
    /// The client's error, if no answer begins.
    fn carry(self: Box<Self>, request: Request<Body>) -> Future<Result<Response, ApiError>>;
}

/// Marks a request that another server has carried here by a [`Way`]. That server passes the answer as it comes, so
/// the client's stream is kept alive here, from before the answer's head on.
#[derive(Debug, Clone, Copy)]
pub struct Carried;

/// The error for a server that was lost before or while it answered.
pub fn lost(words: impl Into<String>) -> ApiError {
    let error = ApiError::new(StatusCode::BAD_GATEWAY, Kind::Server, words.into());
    ApiError { code: Some("worker_lost"), ..error }
}

/// Serves a request at another server, if the key's model is there.
///
/// # Errors
/// The request, if it is to be served here.
pub(crate) async fn serve(
    shape: &'static dyn Shape,
    api: &Api,
    elsewhere: &dyn Elsewhere,
    key: &KeyId,
    parts: Parts,
    body: Body,
) -> Result<Response, (Parts, Body)> {
    let way = match elsewhere.find(key).await {
        Ok(Some(way)) => way,
        Ok(None) => return Err((parts, body)),
        Err(error) => {
            return Ok(refuse(shape, api, &parts, body, &error, new_id()).await);
        }
    };
    let via = match head::via(api.marks(), api.via(), &Scope::server(), &parts.headers) {
        Ok(via) => via,
        Err(met) => return Ok(refuse(shape, api, &parts, body, &met.into(), new_id()).await),
    };
    let Parts { method, uri, headers, .. } = parts;
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = head::put_via(head::for_other_server(headers), via);
    Ok(match way.carry(request).await {
        Ok(response) => answer(shape, response),
        Err(error) => error.response(shape, new_id()),
    })
}

/// An answer of another server, as it goes to the client.
pub(crate) fn answer(shape: &'static dyn Shape, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    head::drop_hop_by_hop(&mut parts.headers);
    let id = parts.headers.get("x-request-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let id = id.unwrap_or_else(new_id);
    head::put_job_id(&mut parts.headers, shape, id);
    let head = scheduler::Head { status: parts.status, headers: parts.headers };
    let stream = || (PassedStream::default(), StreamEnd::of(shape.endpoint()));
    let events = is_plain_event_stream(&head).then(stream);
    let body = Body::new(CarriedBody { body, shape, events, id, done: false });
    (head.status, head.headers, body).into_response()
}

/// An answer of another server on its way out.
struct CarriedBody {
    body: Body,
    shape: &'static dyn Shape,
    /// For a stream of events: how far it has got, and whether its logical end has passed.
    events: Option<(PassedStream, StreamEnd)>,
    id: JobId,
    done: bool,
}

impl CarriedBody {
    fn failed(&mut self, words: String) -> Result<Frame<Bytes>, BrokenOff> {
        self.done = true;
        let Some((passed, _)) = &self.events else { return Err(BrokenOff(words)) };
        let mut last = self.shape.closing(passed.boundary()).to_vec();
        let event = self.shape.error_event(&lost(words), self.id, passed.next_number());
        last.extend_from_slice(event.as_bytes());
        Ok(Frame::data(last.into()))
    }
}

impl http_body::Body for CarriedBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = &mut *self;
        if this.done {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let (Some((passed, end)), Some(data)) = (&mut this.events, frame.data_ref()) {
                    passed.feed(data);
                    end.feed(data);
                    // After the stream's logical end, a fault of the connection does not concern the client.
                    this.done = end.is_over();
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => Some(this.failed(error.to_string())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.done || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The length of a stream is not known: an error event may still be added.
        self.events.as_ref().map_or_else(|| self.body.size_hint(), |_| SizeHint::default())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;
    use crate::shape;

    /// The answer that a client gets of these pieces, of which the last is an error.
    async fn answered(
        kind: &'static str,
        pieces: &'static [&'static str],
    ) -> Result<String, String> {
        let frames =
            pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        let frames = frames.chain([Err("two cannot be reached".to_owned())]);
        let body = Body::new(StreamBody::new(futures_util::stream::iter(frames)));
        let headers = [("content-type", kind), ("connection", "close"), ("x-request-id", ID)];
        let response = answer(shape::of_path("/v1/messages"), (headers, body).into_response());
        assert_eq!(response.headers()["request-id"], ID);
        assert!(!response.headers().contains_key("connection"));
        let read = axum::body::to_bytes(response.into_body(), 4096).await;
        Ok(String::from_utf8(read.map_err(|error| error.to_string())?.to_vec()).unwrap())
    }

    const ID: &str = "r-00000000000000000000000000000007";

    #[tokio::test]
    async fn a_stream_that_breaks_off_ends_with_the_error_event_of_its_api() {
        let text = answered("text/event-stream", &["event: a\ndata: 1\n\n", "event: b\nda"]).await;
        let text = text.unwrap();
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.starts_with("event: error\ndata: {"), "{text}");
        assert!(last.contains("two cannot be reached") && last.contains(ID), "{text}");
        assert!(text.starts_with("event: a\ndata: 1\n\nevent: b\nda"), "{text}");
    }

    #[tokio::test]
    async fn nothing_follows_the_end_of_a_stream() {
        let text = answered("text/event-stream", &["event: a\n\n", WHOLE]).await.unwrap();
        assert_eq!(text, format!("event: a\n\n{WHOLE}"));
    }

    const WHOLE: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    #[tokio::test]
    async fn another_answer_that_breaks_off_is_not_taken_for_complete() {
        let broken = answered("application/json", &["{\"a\":"]).await.unwrap_err();
        assert!(broken.contains("two cannot be reached"), "{broken}");
    }
}
