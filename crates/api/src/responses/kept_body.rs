//! An answer on its way out, with the state of its response here. The event that ends it waits until the response is
//! kept: who hears of the end may continue it at once.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{
    plan::{MAX_KEPT, Plan},
    told::{Part, Stream, Told},
};
use crate::{
    body::{AnswerBody, BrokenOff},
    state::Api,
};

/// The most of a whole answer that is held, so that it tells the truth even if it is too large to be kept; in bytes.
const MAX_HELD: usize = 4 * MAX_KEPT;

type Saving = Pin<Box<dyn Future<Output = Bytes> + Send>>;

/// An answer on its way out.
pub(crate) struct KeptBody {
    api: Api,
    plan: Box<Plan>,
    body: AnswerBody,
    content: Content,
    ready: VecDeque<Part>,
    saving: Option<Saving>,
    has_ended: bool,
}

enum Content {
    Events(Box<Stream>),
    /// One object, as far as it has come.
    Object(Vec<u8>),
    /// What is not read any more.
    Unread,
}

impl KeptBody {
    pub(crate) fn new(api: Api, plan: Box<Plan>, body: AnswerBody, is_stream: bool) -> Self {
        let content = match is_stream {
            true => Content::Events(Box::new(Stream::new(plan.told.clone()))),
            false => Content::Object(Vec::new()),
        };
        let (ready, saving) = (VecDeque::new(), None);
        Self { api, plan, body, content, ready, saving, has_ended: false }
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

    /// Keeps the response that a last event or a whole answer has. Gives what its client is told then.
    fn save(&self, last: Bytes) -> Saving {
        let (api, plan, is_event) = (self.api.clone(), self.plan.clone(), !self.has_ended);
        Box::pin(async move {
            let Some((text, response)) = told(&plan.told, &last, is_event) else { return last };
            let is_kept = match api.keeping().filter(|_| response.len() <= MAX_KEPT) {
                Some(keeping) => plan.keep(keeping, response).await,
                None => false,
            };
            if is_kept || !plan.told.store {
                return text.into();
            }
            let not_kept = Told { store: false, ..plan.told.clone() };
            told(&not_kept, &last, is_event).map_or(last, |(text, _)| text.into())
        })
    }
}

/// What the client gets instead of its provider's last event or whole answer, and the response in it.
fn told(told: &Told, last: &[u8], is_event: bool) -> Option<(String, String)> {
    if is_event {
        return told.event(last).map(|event| (event.text, event.response));
    }
    let response = told.put(std::str::from_utf8(last).ok()?)?;
    Some((response.clone(), response))
}

impl Body for KeptBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        loop {
            if let Some(saving) = &mut this.saving {
                let last = ready!(saving.as_mut().poll(cx));
                this.saving = None;
                return Poll::Ready(Some(Ok(Frame::data(last))));
            }
            match this.ready.pop_front() {
                Some(Part::Ready(bytes)) if bytes.is_empty() => continue,
                Some(Part::Ready(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Part::Last(last)) => {
                    this.saving = Some(this.save(last));
                    continue;
                }
                None if this.has_ended => return Poll::Ready(None),
                None => {}
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(chunk) = frame.into_data() {
                        this.take(chunk);
                    }
                }
                Some(Err(error)) => {
                    this.has_ended = true;
                    this.content = Content::Unread;
                    return Poll::Ready(Some(Err(error)));
                }
                None => this.end(),
            }
        }
    }
}
