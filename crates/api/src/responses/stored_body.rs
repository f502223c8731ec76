//! An answer on its way to its client, into which the response's state at this server is put. The event that ends the
//! answer is sent once the response is kept, so that a client that has seen the end can continue the response at once.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::unfold;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::{
    plan::{MAX_KEPT, Plan},
    response_state::{Part, ResponseState, Stream},
};
use crate::{
    body::{AnswerBody, BrokenOff},
    state::Api,
};

/// The most bytes of an answer in one piece that are held back. This is more than can be kept, so that most answers
/// that are too large to be kept can still say so.
const MAX_HELD: usize = 4 * MAX_KEPT;

/// An answer on its way out.
pub(crate) struct StoredBody {
    api: Api,
    plan: Box<Plan>,
    body: AnswerBody,
    content: Content,
    ready: VecDeque<Part>,
    /// The answer's trailers, which follow the last bytes.
    trailers: Option<Frame<Bytes>>,
    has_ended: bool,
}

enum Content {
    Events(Box<Stream>),
    /// One JSON object, as far as it has come.
    Object(Vec<u8>),
    /// The answer passes as it comes, and is not read any more.
    Unread,
}

impl StoredBody {
    /// The body for the client of an answer, into which the state is put as it passes.
    pub(crate) fn around(
        body: AnswerBody,
        api: Api,
        plan: Box<Plan>,
        is_stream: bool,
    ) -> axum::body::Body {
        let content = match is_stream {
            true => Content::Events(Box::new(Stream::new(plan.state.clone()))),
            false => Content::Object(Vec::new()),
        };
        let ready = VecDeque::new();
        let stored = Self { api, plan, body, content, ready, trailers: None, has_ended: false };
        axum::body::Body::new(StreamBody::new(unfold(stored, async |mut stored| {
            Some((stored.next().await?, stored))
        })))
    }

    /// The next bytes for the client, and at the end the trailers.
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BrokenOff>> {
        loop {
            match self.ready.pop_front() {
                Some(Part::Ready(bytes)) if bytes.is_empty() => continue,
                Some(Part::Ready(bytes)) => return Some(Ok(Frame::data(bytes))),
                Some(Part::Last(last)) => return Some(Ok(Frame::data(self.save(last).await))),
                None if self.has_ended => return self.trailers.take().map(Ok),
                None => {}
            }
            match self.body.frame().await.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(chunk))) => self.take(chunk),
                Some(Ok(Err(trailers))) => self.trailers = Some(trailers),
                Some(Err(error)) => {
                    self.has_ended = true;
                    self.content = Content::Unread;
                    return Some(Err(error));
                }
                None => self.end(),
            }
        }
    }

    fn take(&mut self, chunk: Bytes) {
        match &mut self.content {
            Content::Events(stream) => {
                self.ready.extend(stream.feed(&chunk));
                if stream.has_given_up() {
                    self.give_up();
                }
            }
            Content::Object(begun) if begun.len() + chunk.len() > MAX_HELD => {
                let begun = std::mem::take(begun);
                self.ready.extend([Part::Ready(begun.into()), Part::Ready(chunk)]);
                self.give_up();
            }
            Content::Object(begun) => begun.extend_from_slice(&chunk),
            Content::Unread => self.ready.push_back(Part::Ready(chunk)),
        }
    }

    fn give_up(&mut self) {
        self.content = Content::Unread;
        tracing::warn!(id = self.plan.id(), "a response is too large to be kept");
    }

    fn end(&mut self) {
        self.has_ended = true;
        match std::mem::replace(&mut self.content, Content::Unread) {
            Content::Events(mut stream) => self.ready.push_back(Part::Ready(stream.end())),
            Content::Object(whole) => self.ready.push_back(Part::Last(whole.into())),
            Content::Unread => {}
        }
    }

    /// Keeps the response in `last`, the last event of a stream or a whole answer. Returns the bytes for the client.
    async fn save(&self, last: Bytes) -> Bytes {
        let (state, is_event) = (&self.plan.state, !self.has_ended);
        let Some((text, response)) = written(state, &last, is_event) else { return last };
        let is_kept = match self.api.keeping().filter(|_| response.len() <= MAX_KEPT) {
            Some(keeping) => self.plan.keep(keeping, response).await,
            None => false,
        };
        if is_kept || !state.store {
            return text.into();
        }
        let not_kept = ResponseState { store: false, ..state.clone() };
        written(&not_kept, &last, is_event).map_or(last, |(text, _)| text.into())
    }
}

/// The text for the client, made of the provider's last event or whole answer; and the response in it.
fn written(state: &ResponseState, last: &[u8], is_event: bool) -> Option<(String, String)> {
    if is_event {
        return state.event(last).map(|event| (event.text, event.response));
    }
    let response = state.put(std::str::from_utf8(last).ok()?)?;
    Some((response.clone(), response))
}
