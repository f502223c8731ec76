//! The answer on its way out.
//!
//! Each chunk of the exchange is one frame of the body: one write for the bytes of one read, or for the
//! small reads gathered since the client last read. Only three things are ever added, all between events
//! of a stream: a sign of life after silence, a comment where another provider has gone on, and the API's own error
//! event when the answer is cut off.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use base::{Endpoint, ModelName};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use protocol::{openai::SequenceReader, sse::Boundary};
use scheduler::{Answer, Event, Head, exchange::Seam};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    early::{Early, called},
    error::ApiError,
    response_makers::Recorder,
    shape::Shape,
    uploads::HeldMemory,
};

/// The trailer that says how often the answer was resumed after its provider was lost.
pub(crate) const RESUMED: &str = "x-warren-resumed";

/// Why a body was cut off. The connection is closed, so that no client takes the body for complete.
#[derive(Debug)]
pub struct BrokenOff(pub(crate) String);

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the answer broke off: {}", self.0)
    }
}

impl std::error::Error for BrokenOff {}

/// The result of a poll for the next frame of a body.
pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, BrokenOff>>>;

pub(crate) struct AnswerBody {
    answer: Answer,
    shape: &'static dyn Shape,
    model: ModelName,
    events: Option<Events>,
    /// The bytes still to be sent, if known.
    left: Option<u64>,
    /// Whether its status forbids a body.
    bodyless: bool,
    delivery: Delivery,
    /// Whether another provider may go on with the answer.
    may_be_resumed: bool,
    done: bool,
}

/// The things that the delivery of an answer needs beside the answer itself.
pub(crate) struct Delivery {
    /// Present while the client has a head of this server, and the provider's has not come yet.
    pub(crate) early: Option<Early>,
    /// The memory of its request, if another provider may have to go on with the answer.
    pub(crate) memory: Option<HeldMemory>,
    /// Whether the client may know the names of workers.
    pub(crate) names_workers: bool,
    /// Whether the client reads trailers.
    pub(crate) trailers: bool,
    /// Notes which participant made the response, if it is one of a room.
    pub(crate) recorder: Option<Box<Recorder>>,
}

struct Events {
    boundary: Boundary,
    /// Reads the events' sequence numbers, which the Responses API alone has.
    sequence: Option<SequenceReader>,
    keepalive: Option<Keepalive>,
}

/// When to send a sign of life. The timer is not moved with each chunk, which would cost more
/// than the chunk: it fires, looks when something was last sent, and is set again.
struct Keepalive {
    every: Duration,
    sent: Instant,
    timer: Pin<Box<Sleep>>,
}

impl AnswerBody {
    pub(crate) fn new(
        answer: Answer,
        head: &Head,
        shape: &'static dyn Shape,
        model: ModelName,
        keepalive: Duration,
        delivery: Delivery,
    ) -> Self {
        let begun = if delivery.early.is_some() { Duration::ZERO } else { keepalive };
        let numbered = shape.endpoint() == Endpoint::Responses;
        let events = shape.is_stream(head).then(|| Events {
            sequence: numbered.then(SequenceReader::default),
            ..Events::new(keepalive, begun)
        });
        let announced = head.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()?.parse().ok());
        let left = announced.or_else(|| answer.rest().map(|rest| rest as u64));
        let bodyless = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let may_be_resumed = answer.may_be_resumed();
        let done = false;
        Self { answer, shape, model, events, left, bodyless, delivery, may_be_resumed, done }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Polled {
        if self.done {
            return Poll::Ready(self.trailers().map(Ok));
        }
        if let Some(early) = &mut self.delivery.early {
            match early.poll(cx, &mut self.answer, self.shape, self.model.as_str()) {
                Poll::Ready(Ok(())) => self.begun(),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(self.failed(error))),
                Poll::Pending => return self.poll_waiting(cx),
            }
        }
        if let Some(comment) = self.seam() {
            return Poll::Ready(Some(Ok(comment)));
        }
        match self.answer.poll_next(cx) {
            Poll::Ready(Event::Chunk(chunk)) => Poll::Ready(Some(self.chunk(chunk))),
            Poll::Ready(Event::End) => Poll::Ready(self.end()),
            Poll::Ready(Event::Failed(failure)) => {
                let error = ApiError::of_failure(&failure, self.model.as_str());
                Poll::Ready(Some(self.failed(error)))
            }
            Poll::Pending => match &mut self.events {
                Some(events) => {
                    ready!(events.poll_sign_of_life(cx, self.shape));
                    let sign = Bytes::from_static(self.shape.keepalive());
                    Poll::Ready(Some(Ok(Frame::data(sign))))
                }
                None => Poll::Pending,
            },
        }
    }

    /// Notes which participant made the response that passes, once the response's id has been read.
    fn record(&mut self, polled: &Polled) {
        let is_over = self.is_end_stream();
        let Some(recorder) = &mut self.delivery.recorder else { return };
        let chunk = match polled {
            Poll::Ready(Some(Ok(frame))) => frame.data_ref(),
            _ => None,
        };
        let Some(id) = recorder.passed(chunk.map(|chunk| &**chunk), is_over) else { return };
        let provider = self.answer.provider().filter(|_| self.delivery.early.is_none());
        provider.into_iter().for_each(|provider| recorder.note(&id, provider));
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Frame<Bytes>, BrokenOff> {
        if let Some(left) = &mut self.left {
            let Some(rest) = left.checked_sub(chunk.len() as u64) else {
                self.left = None;
                return Err(BrokenOff("it is longer than announced".to_owned()));
            };
            *left = rest;
        }
        if let Some(events) = &mut self.events {
            events.passed(&chunk, self.answer.moved().into());
        }
        Ok(Frame::data(chunk))
    }

    /// A comment on what the request waits for, whenever a sign of life is due.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Polled {
        let (Some(early), Some(events)) = (&self.delivery.early, &mut self.events) else {
            return Poll::Pending;
        };
        ready!(events.poll_sign_of_life(cx, self.shape));
        let words = early.words(&self.answer, self.model.as_str());
        Poll::Ready(Some(Ok(Frame::data(self.shape.waiting(&words).into()))))
    }

    /// Called when the provider's head has come after the client's.
    fn begun(&mut self) {
        self.delivery.memory = self.delivery.early.take().and_then(|early| early.memory);
        self.may_be_resumed = self.answer.may_be_resumed();
    }

    fn end(&mut self) -> Option<Result<Frame<Bytes>, BrokenOff>> {
        self.done = true;
        if self.left.is_some_and(|left| left > 0) {
            return Some(Err(BrokenOff("it is shorter than announced".to_owned())));
        }
        self.trailers().map(Ok)
    }

    /// The comment at a seam of the answer: another provider goes on there.
    fn seam(&mut self) -> Option<Frame<Bytes>> {
        if !self.may_be_resumed || self.left.is_some() {
            return None;
        }
        let Seam { provider, delivered } = self.answer.take_seam()?;
        let events = self.events.as_mut().filter(|it| self.shape.may_add(&it.boundary))?;
        let name = base::plain::line(provider.as_deref()?);
        let name = called(&name, self.delivery.names_workers);
        let characters = delivered.characters;
        let words = format!("resumed on {name} after {characters} characters");
        let comment = Bytes::from(self.shape.comment(&words)?);
        events.boundary.feed(&comment);
        Some(Frame::data(comment))
    }

    /// The trailer, for a client that reads trailers and an answer that was resumed. Returned once.
    fn trailers(&mut self) -> Option<Frame<Bytes>> {
        let wanted = std::mem::take(&mut self.delivery.trailers) && self.left.is_none();
        let count = self.answer.seams();
        let trailer = (HeaderName::from_static(RESUMED), HeaderValue::from(count));
        (wanted && count > 0).then(|| Frame::trailers(HeaderMap::from_iter([trailer])))
    }

    fn owes_trailers(&self) -> bool {
        self.delivery.trailers && self.left.is_none() && self.answer.seams() > 0
    }

    fn failed(&mut self, error: ApiError) -> Result<Frame<Bytes>, BrokenOff> {
        self.done = true;
        let Some(events) = &self.events else {
            return Err(BrokenOff(error.message.into_owned()));
        };
        let mut last = self.shape.closing(&events.boundary).to_vec();
        let number = events.sequence.as_ref().map_or(0, SequenceReader::next_number);
        let event = self.shape.error_event(&error, self.answer.job(), number);
        last.extend_from_slice(event.as_bytes());
        Ok(Frame::data(last.into()))
    }
}

/// The HTTP writer drops the body at the announced length, or at once when there is nothing to
/// write. That does not mean that the client hung up, although the answer has not ended yet.
impl Drop for AnswerBody {
    fn drop(&mut self) {
        if self.left == Some(0) || self.bodyless {
            self.answer.suffices();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let polled = self.poll_next(cx);
        if self.delivery.recorder.is_some() {
            self.record(&polled);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        (self.done && !self.owes_trailers())
            || (self.left == Some(0) && self.answer.rest() == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Events {
    /// Signs of life are due after `first`, and each time that nothing is sent for `every`.
    fn new(every: Duration, first: Duration) -> Self {
        let keepalive = (!every.is_zero()).then(|| {
            let due = Instant::now() + first;
            let sent = due.checked_sub(every).unwrap_or(due);
            Keepalive { every, sent, timer: Box::pin(sleep_until(due)) }
        });
        Self { boundary: Boundary::new(), sequence: None, keepalive }
    }

    /// Notes a chunk that goes to the client. `at`: when it was taken from the exchange.
    fn passed(&mut self, chunk: &[u8], at: Instant) {
        self.boundary.feed(chunk);
        if let Some(sequence) = &mut self.sequence {
            sequence.feed(chunk);
        }
        if let Some(keepalive) = &mut self.keepalive {
            keepalive.sent = at;
        }
    }

    /// Ready when a sign of life is due and may be added.
    fn poll_sign_of_life(&mut self, cx: &mut Context<'_>, shape: &dyn Shape) -> Poll<()> {
        let Some(keepalive) = &mut self.keepalive else { return Poll::Pending };
        while keepalive.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let due = now.duration_since(keepalive.sent) >= keepalive.every;
            if due {
                keepalive.sent = now;
            }
            keepalive.timer.as_mut().reset(keepalive.sent + keepalive.every);
            // Nothing may be added inside an event: the next timer tries again.
            if due && shape.may_add(&self.boundary) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}
