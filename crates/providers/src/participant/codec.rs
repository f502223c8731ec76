//! Sends requests, receives a participant's frames.

use std::time::Duration;

use base::JobId;
use http::StatusCode;
use protocol::{
    json::clip,
    openai::error_body,
    room::tunnel::{
        BadFrame, FromParticipant, ResponseChunk, ResponseError, ResponseStart, ToParticipant,
        TunnelCancel, close,
    },
};
use scheduler::{Assignment, LeaveReason, Membership, WriteError};
use tokio::time::Instant;
use wire::{Frame, Outbox};

use super::{
    abandoned::AbandonedRequests,
    answer,
    offer::{capacity, served},
    request::{self, RequestFrame},
};
use crate::{
    complaints::Complaints,
    incoming::Incoming,
    jobs::Jobs,
    link::{Closes, Codec},
    member::Member,
    served::{RequestShape, ServedEndpoints},
    unsent::UnsentRequest,
};

/// How many bytes of a participant's own text are logged or passed on.
const MAX_WORDS: usize = 300;

/// The longest chunk frame, in bytes.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// A participant that is silent for this long is lost. It pings every 10 s.
const SILENCE: Duration = Duration::from_secs(30);

/// One participant: its requests, and the way of its frames into their exchanges.
pub(super) struct TunnelCodec {
    member: Member,
    membership: Membership,
    outbox: Outbox,
    served: ServedEndpoints,
    /// Whether it accepts cancellations.
    cancels: bool,
    requests: Jobs<String, Request>,
    abandoned: AbandonedRequests,
    complaints: Complaints,
}

struct Request {
    unsent: UnsentRequest<String>,
    incoming: Incoming,
}

impl Codec for TunnelCodec {
    type Job = Assignment;

    const NAME: &'static str = "participant";
    const CLOSES: Closes = Closes {
        drained: close::CLOSING,
        drain_timed_out: close::CLOSING,
        goodbye: close::CLOSING,
        broken: close::PROTOCOL_ERROR,
        silent: close::PING_LAPSE,
    };

    fn assigned(&mut self, assignment: Assignment) {
        let Assignment { job, attempt, request, endpoint, alternatives, answer: writer } =
            assignment;
        let id = request::id(job, attempt);
        let text = match request::encode(&id, &request) {
            Ok(text) => text,
            Err(error) => {
                let Err(writer) = writer.pass_on() else { return };
                let words = format!("the body is not JSON: {error}");
                let body = error_body(&words, "invalid_request_error", None, None);
                return writer.answer_error(StatusCode::BAD_REQUEST, body);
            }
        };
        let unsent = UnsentRequest::new(text);
        if self.outbox.push_source(Box::new(RequestFrame(unsent.clone()))).is_err() {
            // The tunnel's task will find the tunnel broken and give the job back.
            tracing::debug!(request_id = %job, "a request could not be sent: the tunnel is closed");
        }
        let shape = RequestShape::new(endpoint, alternatives, &request);
        let incoming = Incoming::new(writer, shape);
        self.requests.insert(id, job, Request { unsent, incoming });
    }

    /// Cancels a request. An unsent request is never sent. For a sent one, the slot stays taken
    /// until the participant reports that it has finished.
    fn canceled(&mut self, job: JobId) {
        let Some(id) = self.requests.name_of(job).cloned() else {
            // Unless the job was abandoned here, it was never sent or has ended.
            if !self.abandoned.is_for(job) {
                self.membership.ceased(job);
            }
            return;
        };
        let Some((_, request)) = self.requests.take(&id) else { return };
        match request.unsent.take() {
            Some(_) => self.membership.ceased(job),
            None => self.abandon(id, job),
        }
        request.incoming.writer.abandon();
    }

    fn frame(&mut self, frame: Frame) {
        let Frame::Text(text) = frame else {
            return self.complain("a binary frame was ignored: this tunnel speaks JSON text", "");
        };
        match FromParticipant::decode(text.as_str()) {
            Ok(frame) => self.message(frame, text.len()),
            Err(bad) => self.bad(&bad),
        }
    }

    /// Applies the participant's new offer after it joined again.
    fn changed(&mut self) {
        let Some(now) = self.member.served() else { return };
        self.served = served(now.capabilities);
        self.membership.capacity(capacity(&now));
        self.membership.endpoints(self.served.endpoints());
        self.membership.models(self.member.offered(&now.models), 0);
    }

    fn first_check(&self) -> Duration {
        SILENCE
    }

    fn check_silence(&mut self, heard: Instant) -> Option<Instant> {
        let lost = heard + SILENCE;
        (lost > Instant::now()).then_some(lost)
    }

    fn next_due(&self) -> Option<Instant> {
        self.served.next_retry()
    }

    fn due(&mut self) {
        if self.served.retry(Instant::now()) {
            self.membership.endpoints(self.served.endpoints());
        }
    }

    fn leave(self, why: LeaveReason) {
        self.membership.leave(why);
        for request in self.requests.into_jobs() {
            request.unsent.clear();
            request.incoming.writer.abandon();
        }
    }
}

impl TunnelCodec {
    pub(super) fn new(
        member: Member,
        membership: Membership,
        outbox: Outbox,
        served: ServedEndpoints,
        cancels: bool,
    ) -> Self {
        Self {
            member,
            membership,
            outbox,
            served,
            cancels,
            requests: Jobs::new(),
            abandoned: AbandonedRequests::default(),
            complaints: Complaints::new(Instant::now()),
        }
    }

    /// Gives up a request that the participant still works on.
    fn abandon(&mut self, request_id: String, job: JobId) {
        if self.cancels {
            let cancel = TunnelCancel { request_id: request_id.clone() };
            // The tunnel's own task notices a closed tunnel.
            let _ = self.outbox.push(ToParticipant::Cancel(cancel).encode());
        }
        if let Some(forgotten) = self.abandoned.add(request_id, job) {
            self.membership.ceased(forgotten);
        }
    }

    fn message(&mut self, frame: FromParticipant, len: usize) {
        match frame {
            FromParticipant::Ping(tick) => {
                // The tunnel's own task notices a closed tunnel.
                let _ = self.outbox.push(ToParticipant::Pong(tick).encode());
            }
            FromParticipant::Start(start) => self.start(&start),
            // The link's own limit is higher: a frame of this size costs its request, not the
            // tunnel.
            FromParticipant::Chunk(chunk) if len > MAX_FRAME => {
                self.spoil(&chunk.request_id, "it sent a chunk over 16 MiB");
            }
            FromParticipant::Chunk(chunk) => self.chunk(chunk),
            FromParticipant::End(end) => self.end(&end.request_id),
            FromParticipant::Error(error) => self.error(&error),
        }
    }

    fn start(&mut self, start: &ResponseStart) {
        let id = &start.request_id;
        let Some(request) = self.requests.get_mut(id) else { return self.unknown(id) };
        let headers = start.headers.iter();
        let headers = headers.map(|(name, value)| (&**name, value.clone().into_bytes()));
        match answer::head(start.status, headers) {
            Err(bad) => self.spoil(id, &bad.to_string()),
            Ok(head) => {
                if let Err(error) = request.incoming.head(head, &self.served) {
                    self.unwritten(id, error);
                }
            }
        }
    }

    fn chunk(&mut self, chunk: ResponseChunk) {
        let ResponseChunk { request_id: id, chunk } = chunk;
        let Some(request) = self.requests.get_mut(&id) else { return self.unknown(&id) };
        if !request.incoming.has_head() {
            return self.spoil(&id, "it sent a chunk before the head");
        }
        if let Err(error) = request.incoming.chunk(chunk) {
            self.unwritten(&id, error);
        }
    }

    fn end(&mut self, id: &str) {
        let Some((_, Request { incoming, .. })) = self.requests.take(id) else {
            return self.over(id);
        };
        self.served.end(&self.membership, incoming, Self::NAME);
    }

    fn error(&mut self, error: &ResponseError) {
        let Some((job, request)) = self.requests.take(&*error.request_id) else {
            return self.over(&error.request_id);
        };
        let words = clip(&error.message, MAX_WORDS);
        tracing::warn!(request_id = %job, words, "the participant failed a request");
        request.incoming.writer.fail(words);
    }

    fn bad(&mut self, bad: &BadFrame) {
        let problem = bad.to_string();
        let id = bad.request_id.as_deref().unwrap_or_default();
        match self.requests.contains(id) {
            true => self.spoil(id, &problem),
            false => self.complain("a bad frame was ignored", &problem),
        }
    }

    /// Records the end of an abandoned request and frees its slot.
    fn over(&mut self, id: &str) {
        match self.abandoned.remove(id) {
            Some(job) => self.membership.ceased(job),
            None => self.unknown(id),
        }
    }

    /// Handles a frame about a request that the participant does not have.
    fn unknown(&mut self, id: &str) {
        if !self.abandoned.contains(id) {
            self.complain("a frame about a request that the participant does not have", id);
        }
    }

    /// Fails a request whose frame was bad; its later frames are ignored.
    fn spoil(&mut self, id: &str, why: &str) {
        let Some((job, request)) = self.requests.take(id) else { return self.unknown(id) };
        tracing::warn!(request_id = %job, why, "a participant's answer was bad");
        self.abandon(id.to_owned(), job);
        request.incoming.writer.fail(why);
    }

    /// Handles the writer's refusal of the rest of an answer.
    fn unwritten(&mut self, id: &str, error: WriteError) {
        // The job has ended at the scheduler, whose cancellation will arrive soon.
        if error == WriteError::Over {
            return;
        }
        if let Some((job, request)) = self.requests.take(id) {
            self.abandon(id.to_owned(), job);
            request.incoming.writer.give_up(error);
        }
    }

    fn complain(&mut self, what: &str, words: &str) {
        if self.complaints.may_make(Instant::now()) {
            tracing::warn!(words = clip(words, MAX_WORDS), "{what}");
        }
    }
}
