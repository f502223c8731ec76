//! Records, as answers pass, which participant made which response.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use base::{JobId, ProviderId, RoomId};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use protocol::openai::ResponseIdReader;
use rooms::Room;
use scheduler::{Answer, Head};

use crate::{
    body::{AnswerBody, BrokenOff},
    response_makers::Maker,
    state::Api,
};

/// An answer whose id will be noted.
pub(crate) struct Recorder {
    api: Api,
    room: RoomId,
    job: JobId,
}

impl Recorder {
    /// The recorder of an answer with this head; `None` when the answer makes no response.
    pub(crate) fn new(api: &Api, room: &Room, answer: &Answer, head: &Head) -> Option<Self> {
        let new = || Self { api: api.clone(), room: room.id().clone(), job: answer.job() };
        head.status.is_success().then(new)
    }

    /// Wraps the answer's body, which passes unchanged.
    pub(crate) fn around(self, body: AnswerBody) -> RecordedBody {
        RecordedBody { recorder: self, reader: ResponseIdReader::default(), body }
    }

    fn note(&self, id: &str, provider: ProviderId) {
        let translated = id.strip_prefix("resp_") == Some(&self.job.digits());
        let maker = if translated { Maker::Translation } else { Maker::Provider(provider) };
        self.api.response_makers().note(&self.room, id, maker, Instant::now());
    }
}

/// An answer whose id is noted as it passes.
pub(crate) struct RecordedBody {
    recorder: Recorder,
    reader: ResponseIdReader,
    body: AnswerBody,
}

impl Body for RecordedBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let found = match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                frame.data_ref().and_then(|chunk| this.reader.feed(chunk))
            }
            _ => None,
        };
        // Nobody may ask for what follows the last of the announced bytes.
        let found =
            found.or_else(|| this.body.is_end_stream().then(|| this.reader.end()).flatten());
        if let (Some(id), Some(provider)) = (found, this.body.provider()) {
            this.recorder.note(&id, provider);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
