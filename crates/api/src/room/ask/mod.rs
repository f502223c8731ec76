//! The answer to an `llm:request`: read as it arrives, and sent to the room's watchers token by token.
//!
//! - `tokens`: the tokens of an answer

mod tokens;

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use access::Moment;
use base::millis;
use bytes::Bytes;
use http::StatusCode;
use protocol::{
    json::clip,
    room::{
        RoomEvent, ServerMessage,
        message::{LlmComplete, LlmError, LlmToken},
        types::AnswerMetrics,
    },
};
use rooms::Room;
use scheduler::{Answer, Event, Failure, Head};
use tokio::time::Instant;
use translate::{Answer as _, BadAnswer, Body, chat::FromChat};

use self::tokens::{AnswerFacts, Tokens};
use super::{
    message_jobs::{InFlight, MessageJobs},
    stream::Frames,
};
use crate::{error::ApiError, head::is_plain_event_stream, uploads::HeldMemory};

/// The longest text that is sent as one token, in bytes. Only an answer that is not a stream has a longer text.
const MAX_TOKEN: usize = 16 * 1024;

/// An answer that is being read. Dropping it before its end cancels the job and tells the watchers.
pub(super) struct Ask {
    room: Arc<Room>,
    jobs: Arc<MessageJobs>,
    /// `None` once the end was reported to the watchers, or the request was refused.
    in_flight: Option<InFlight>,
    answer: Answer,
    /// The memory of the request's body, until the answer's head.
    memory: Option<HeldMemory>,
    request: Request,
    reading: FromChat<Tokens>,
    has_begun: bool,
    participant: String,
    began: Instant,
    first_token: Option<Duration>,
    /// The number of tokens so far.
    seq: u64,
    /// Messages for the asker that are still to be sent.
    messages: VecDeque<ServerMessage>,
}

pub(super) struct Request {
    pub(super) id: String,
    pub(super) target: String,
}

impl Ask {
    /// Begins to read the answer to a request that has just been submitted.
    pub(super) fn new(
        room: Arc<Room>,
        jobs: Arc<MessageJobs>,
        in_flight: InFlight,
        (answer, memory): (Answer, HeldMemory),
        request: Request,
    ) -> Self {
        Self {
            room,
            jobs,
            in_flight: Some(in_flight),
            answer,
            memory: Some(memory),
            request,
            reading: FromChat::new(Tokens::default()),
            has_begun: false,
            participant: String::new(),
            began: Instant::now(),
            first_token: None,
            seq: 0,
            messages: VecDeque::new(),
        }
    }

    /// The error of a request that was refused at once, for instance by a full queue. The caller has to tell the
    /// watchers.
    pub(super) fn refused(&mut self) -> Option<ApiError> {
        match self.answer.poll_head(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(Ok(head)) => {
                self.begin(&head);
                None
            }
            Poll::Ready(Err(failure)) => {
                self.in_flight = None;
                Some(ApiError::of_failure(&failure, &self.request.target))
            }
        }
    }

    /// Reads the answer to its end; only the watchers of the room see it.
    pub(super) async fn run(mut self) {
        while poll_fn(|cx| self.poll_next(cx)).await.is_some() {}
    }

    /// The next message, also sent to the room; `None` after the last.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ServerMessage>> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Poll::Ready(Some(message));
            }
            if self.in_flight.is_none() {
                return Poll::Ready(None);
            }
            ready!(self.poll_read(cx));
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_begun {
            match ready!(self.answer.poll_head(cx)) {
                Ok(head) => self.begin(&head),
                Err(failure) => self.failed(&failure),
            }
            return Poll::Ready(());
        }
        let mut nothing = Vec::new();
        let read = match ready!(self.answer.poll_next(cx)) {
            Event::Chunk(chunk) => self.reading.feed(&chunk, &mut nothing),
            Event::End => self.reading.end(&mut nothing),
            Event::Failed(failure) => {
                self.failed(&failure);
                return Poll::Ready(());
            }
        };
        self.tell(read);
        Poll::Ready(())
    }

    fn begin(&mut self, head: &Head) {
        self.has_begun = true;
        self.memory = None;
        self.participant = self.holder();
        let body = if is_plain_event_stream(head) { Body::Events } else { Body::Json };
        let status = match head.status {
            status if status.is_redirection() => StatusCode::BAD_GATEWAY,
            status => status,
        };
        self.reading.head(status.as_u16(), body);
    }

    /// The id of the participant that has the job or had it last; empty when no participant ever had it.
    fn holder(&self) -> String {
        let job = self.answer.job();
        self.jobs.holder(job).or_else(|| self.room.holder(job)).unwrap_or_default()
    }

    fn tell(&mut self, read: Result<(), BadAnswer>) {
        let tokens = self.reading.writer();
        let (said, end) = (std::mem::take(&mut tokens.said), tokens.end.take());
        said.iter().for_each(|text| self.tell_text(text));
        match (end, read) {
            (Some(Ok(facts)), _) => self.complete(facts),
            (Some(Err(error)), _) => {
                self.answer.suffices();
                self.fail(error);
            }
            (None, Err(BadAnswer(error))) => self.fail(error),
            (None, Ok(())) => {}
        }
    }

    fn tell_text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let token = clip(rest, MAX_TOKEN);
            rest = &rest[token.len()..];
            self.tell_token(token.to_owned());
        }
    }

    fn tell_token(&mut self, token: String) {
        let began = self.began;
        self.first_token.get_or_insert_with(|| began.elapsed());
        let token = LlmToken {
            request_id: self.request.id.clone(),
            participant_id: self.participant.clone(),
            token,
            seq: self.seq,
        };
        self.seq += 1;
        let (event, message) = (RoomEvent::LlmToken(token.clone()), ServerMessage::LlmToken(token));
        self.room.tell(Some(event), Some(message.clone()), Moment::now().wall_ms);
        self.messages.push_back(message);
    }

    fn complete(&mut self, facts: AnswerFacts) {
        let took = self.began.elapsed();
        let first = self.first_token.unwrap_or(took);
        let tokens = facts.tokens.unwrap_or(self.seq);
        // The rest of the answer is not needed. The job still runs to its own end.
        self.answer.suffices();
        let metrics = AnswerMetrics::new(millis(first), millis(took), None, Some(tokens));
        self.end(ServerMessage::LlmComplete(LlmComplete {
            request_id: self.request.id.clone(),
            participant_id: self.participant.clone(),
            metrics: metrics.as_spec(),
        }));
    }

    fn failed(&mut self, failure: &Failure) {
        if self.participant.is_empty() {
            self.participant = self.holder();
        }
        self.fail(ApiError::of_failure(failure, &self.request.target).message.into_owned());
    }

    fn fail(&mut self, error: String) {
        self.end(ServerMessage::LlmError(LlmError {
            request_id: self.request.id.clone(),
            participant_id: self.participant.clone(),
            error,
        }));
    }

    fn end(&mut self, last: ServerMessage) {
        self.room.concluded(self.answer.job(), last.clone(), Moment::now().wall_ms);
        self.messages.push_back(last);
        self.in_flight = None;
    }
}

impl Drop for Ask {
    fn drop(&mut self) {
        if self.in_flight.is_some() {
            if self.participant.is_empty() {
                self.participant = self.holder();
            }
            let last = ServerMessage::LlmError(LlmError {
                request_id: self.request.id.clone(),
                participant_id: std::mem::take(&mut self.participant),
                error: "the client left".to_owned(),
            });
            self.room.concluded(self.answer.job(), last, Moment::now().wall_ms);
        }
    }
}

/// The asker's own stream: the same messages, as unnamed events.
impl Frames for Ask {
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let message = ready!(self.poll_next(cx));
        Poll::Ready(message.map(|message| format!("data: {}\n\n", message.encode()).into()))
    }
}
