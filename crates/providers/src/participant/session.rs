//! What each frame of a participant means.

use std::collections::HashMap;

use base::{JobId, ModelName};
use http::StatusCode;
use protocol::{
    json::clip,
    openai::error_body,
    room::tunnel::{
        BadFrame, FromParticipant, ResponseChunk, ResponseError, ResponseStart, ToParticipant,
        TunnelCancel,
    },
};
use scheduler::{Assignment, Gone, Membership, ReaderGone};
use tokio::time::Instant;
use wire::{Frame, Outbox};

use super::{
    answer,
    late::Late,
    request::{self, Sending},
};
use crate::{
    complaints::Complaints,
    incoming::{Incoming, NO_SENSE, REFUSED},
    notes::Note,
    refusal::answer_error,
    served::{Asked, Served},
    unsent::Unsent,
};

/// A participant's words are cut to so many bytes before they are logged or passed on.
const MAX_WORDS: usize = 300;

/// The longest frame that may be about a request, in bytes.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// One participant: its requests, and how its frames reach their exchanges.
pub(super) struct Session {
    membership: Membership,
    outbox: Outbox,
    served: Served,
    /// Whether it can be told to stop.
    cancels: bool,
    requests: HashMap<String, Current>,
    ids: HashMap<JobId, String>,
    late: Late,
    complaints: Complaints,
}

/// A request that the participant has.
struct Current {
    job: JobId,
    unsent: Unsent<String>,
    incoming: Incoming,
}

impl Session {
    pub(super) fn new(
        membership: Membership,
        outbox: Outbox,
        served: Served,
        cancels: bool,
    ) -> Self {
        Self {
            membership,
            outbox,
            served,
            cancels,
            requests: HashMap::new(),
            ids: HashMap::new(),
            late: Late::default(),
            complaints: Complaints::new(Instant::now()),
        }
    }

    /// Takes in what the scheduler has decided. Whether the tunnel is to be closed.
    pub(super) fn notes(&mut self, notes: Vec<Note>) -> bool {
        let mut retired = false;
        for note in notes {
            match note {
                Note::Assigned(assignment) => self.assigned(*assignment),
                Note::Canceled(job) => self.canceled(job),
                Note::Retired => retired = true,
            }
        }
        retired
    }

    /// The participant joined anew, and offers something else from now on.
    pub(super) fn changed(&mut self, models: Vec<ModelName>, served: Served, capacity: u32) {
        self.served = served;
        self.membership.capacity(capacity);
        self.membership.endpoints(served.endpoints());
        self.membership.models(models, 0);
    }

    /// Takes in one frame. Whatever is wrong with it costs at most the request that it is about.
    pub(super) fn frame(&mut self, frame: Frame) {
        let Frame::Text(text) = frame else {
            return self.complain("a binary frame was ignored: this tunnel speaks JSON text", "");
        };
        match FromParticipant::decode(text.as_str()) {
            Ok(frame) => self.message(frame, text.len()),
            Err(bad) => self.bad(&bad),
        }
    }

    /// The participant is gone: its jobs are the scheduler's to move or to end.
    pub(super) fn leave(mut self, unseen: Vec<Note>, why: Gone) {
        for note in unseen {
            match note {
                Note::Assigned(unsent) => unsent.answer.abandon(),
                Note::Canceled(job) => self.canceled(job),
                Note::Retired => {}
            }
        }
        self.membership.leave(why);
        for (_, current) in self.requests {
            current.unsent.clear();
            current.incoming.writer.abandon();
        }
    }

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
                return answer_error(writer, StatusCode::BAD_REQUEST, body);
            }
        };
        let unsent = Unsent::new(text);
        if self.outbox.push_source(Box::new(Sending(unsent.clone()))).is_err() {
            // The tunnel is found broken next, and gives the job back.
            tracing::debug!(request_id = %job, "a request could not be sent: the tunnel is closed");
        }
        let asked = Asked { endpoint, alternatives, model: request.model.as_str().to_owned() };
        self.ids.insert(job, id.clone());
        let incoming = Incoming::new(writer, asked);
        self.requests.insert(id, Current { job, unsent, incoming });
    }

    /// If the request has not been sent to the participant, it never is. Otherwise its slot stays taken
    /// until the participant says that it has finished.
    fn canceled(&mut self, job: JobId) {
        let Some(id) = self.ids.get(&job).cloned() else {
            // The job never got this far or is over, unless it was given up here already.
            if !self.late.is_for(job) {
                self.membership.ceased(job);
            }
            return;
        };
        let Some(current) = self.take(&id) else { return };
        match current.unsent.take() {
            Some(_) => self.membership.ceased(job),
            None => self.forsake(id, job),
        }
        current.incoming.writer.abandon();
    }

    /// Nobody waits any more for this request, which the participant has.
    fn forsake(&mut self, request_id: String, job: JobId) {
        if self.cancels {
            let cancel = TunnelCancel { request_id: request_id.clone() };
            // A closed tunnel is found closed by its own task.
            let _ = self.outbox.push(ToParticipant::Cancel(cancel).encode());
        }
        if let Some(forgotten) = self.late.add(request_id, job) {
            self.membership.ceased(forgotten);
        }
    }

    fn take(&mut self, id: &str) -> Option<Current> {
        let current = self.requests.remove(id)?;
        self.ids.remove(&current.job);
        Some(current)
    }

    fn message(&mut self, frame: FromParticipant, len: usize) {
        match frame {
            FromParticipant::Ping(tick) => {
                // A closed tunnel is found closed by its own task.
                let _ = self.outbox.push(ToParticipant::Pong(tick).encode());
            }
            FromParticipant::Start(start) => self.start(&start),
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
        let Some(current) = self.requests.get_mut(id) else { return self.unknown(id) };
        let headers = start.headers.iter();
        let headers = headers.map(|(name, value)| (&**name, value.clone().into_bytes()));
        match answer::head(start.status, headers) {
            Err(bad) => self.spoil(id, &bad.to_string()),
            Ok(head) => {
                if let Err(gone) = current.incoming.head(head, self.served) {
                    self.unwanted(id, gone);
                }
            }
        }
    }

    fn chunk(&mut self, chunk: ResponseChunk) {
        let ResponseChunk { request_id: id, chunk } = chunk;
        let Some(current) = self.requests.get_mut(&id) else { return self.unknown(&id) };
        if !current.incoming.has_head() {
            return self.spoil(&id, "it sent a chunk before the head");
        }
        if let Err(gone) = current.incoming.chunk(chunk) {
            self.unwanted(&id, gone);
        }
    }

    fn end(&mut self, id: &str) {
        let Some(current) = self.take(id) else { return self.over(id) };
        if current.incoming.is_unserved() {
            return self.unserved(current.incoming);
        }
        current.incoming.end();
    }

    /// The endpoint that a job was sent to is not there: it goes on in another shape.
    fn unserved(&mut self, incoming: Incoming) {
        let endpoint = incoming.asked.endpoint;
        if self.served.lacks(endpoint) {
            tracing::info!(%endpoint, "the participant's backend does not serve this: translating");
            self.membership.endpoints(self.served.endpoints());
        }
        incoming.writer.unserved();
    }

    fn error(&mut self, error: &ResponseError) {
        let Some(current) = self.take(&error.request_id) else {
            return self.over(&error.request_id);
        };
        let words = clip(&error.message, MAX_WORDS);
        tracing::warn!(request_id = %current.job, words, "the participant failed a request");
        current.incoming.writer.fail(words);
    }

    fn bad(&mut self, bad: &BadFrame) {
        let problem = bad.to_string();
        let id = bad.request_id.as_deref().unwrap_or_default();
        match self.requests.contains_key(id) {
            true => self.spoil(id, &problem),
            false => self.complain("a bad frame was ignored", &problem),
        }
    }

    /// The participant has finished a request that nobody waits for.
    fn over(&mut self, id: &str) {
        match self.late.remove(id) {
            Some(job) => self.membership.ceased(job),
            None => self.unknown(id),
        }
    }

    /// A frame about a request that the participant does not have.
    fn unknown(&mut self, id: &str) {
        if !self.late.contains(id) {
            self.complain("a frame about a request that the participant does not have", id);
        }
    }

    /// A request whose frame was bad: it fails, and what still comes of it is ignored.
    fn spoil(&mut self, id: &str, why: &str) {
        let Some(current) = self.take(id) else { return self.unknown(id) };
        tracing::warn!(request_id = %current.job, why, "a participant's answer was bad");
        self.forsake(id.to_owned(), current.job);
        current.incoming.writer.fail(why);
    }

    /// A request that nobody waits for any more.
    fn unwanted(&mut self, id: &str, gone: ReaderGone) {
        match gone {
            ReaderGone::Unreadable => self.spoil(id, NO_SENSE),
            ReaderGone::Refused => self.spoil(id, REFUSED),
            ReaderGone::Stalled => {
                let Some(current) = self.take(id) else { return };
                self.forsake(id.to_owned(), current.job);
                current.incoming.writer.stalled();
            }
            // The cancellation is on its way.
            ReaderGone::Over => {}
        }
    }

    fn complain(&mut self, what: &str, words: &str) {
        if self.complaints.may_make(Instant::now()) {
            tracing::warn!(words = clip(words, MAX_WORDS), "{what}");
        }
    }
}
