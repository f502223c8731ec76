//! What each message of a worker means.

use std::{collections::HashMap, sync::Arc};

use base::JobId;
use bytes::Bytes;
use protocol::{
    json::clip,
    relay::{
        CancelReason, WorkerMessage,
        binary::{FailureCode, ResponseEnd, ResponseHead, WorkerFrame, header_bytes},
        message::{ModelsUpdate, ResponseComplete, WorkerError},
        registration::normalise_models,
    },
};
use scheduler::{Membership, ReaderGone, Usage};
use tokio::time::Instant;
use wire::Frame;

use super::{
    place::Place,
    plain::PlainAnswer,
    sender::{Assigned, Form, Note, Sender},
};
use crate::{
    complaints::Complaints,
    head,
    incoming::{Incoming, NO_SENSE},
    refusal::cannot_ask,
    served::Served,
};

/// A worker's words are cut to so many bytes before they are logged or passed on.
pub(super) const MAX_WORDS: usize = 300;

/// One registered worker: its jobs, and how its messages reach their exchanges.
pub(super) struct Session {
    membership: Membership,
    sender: Arc<Sender>,
    served: Served,
    place: Arc<Place>,
    jobs: HashMap<JobId, Current>,
    /// The binary form's names of the jobs.
    numbers: HashMap<u32, JobId>,
    complaints: Complaints,
}

/// A job that the worker has.
pub(super) struct Current {
    pub(super) number: u32,
    pub(super) plain: PlainAnswer,
    pub(super) incoming: Incoming,
}

/// Why a part of an answer was not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nobody reads it.
    Gone(ReaderGone),
    /// It is to be kept until it is whole, and is too long for that.
    TooLong,
}

impl From<ReaderGone> for Stop {
    fn from(gone: ReaderGone) -> Self {
        Self::Gone(gone)
    }
}

/// What the link must do besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    GoOn,
    /// Close: the drain is over; whether everything was finished.
    Retire(bool),
}

impl Session {
    pub(super) fn new(
        membership: Membership,
        sender: Arc<Sender>,
        served: Served,
        place: Arc<Place>,
    ) -> Self {
        let (jobs, numbers) = (HashMap::new(), HashMap::new());
        let complaints = Complaints::new(Instant::now());
        Self { membership, sender, served, place, jobs, numbers, complaints }
    }

    /// Takes in what the scheduler has decided since.
    pub(super) fn catch_up(&mut self) -> Next {
        let mut next = Next::GoOn;
        for note in self.sender.notes() {
            match note {
                Note::Assigned(assigned) => self.assigned(*assigned),
                Note::Canceled(job) => self.canceled(job),
                Note::Unaskable(job, writer, method) => cannot_ask(job, *writer, &method),
                Note::Retired(clean) => next = Next::Retire(clean),
            }
        }
        next
    }

    /// Takes in one frame. Whatever is wrong with it costs at most the job it is about.
    pub(super) fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Text(text) => self.text(text.as_str()),
            Frame::Binary(bytes) if self.sender.form() == Form::Binary => self.binary(bytes),
            Frame::Binary(bytes) if self.may_complain() => {
                tracing::warn!(len = bytes.len(), "a binary frame on a JSON link was ignored");
            }
            Frame::Binary(_) => {}
        }
    }

    /// The worker is gone: its jobs are the scheduler's to move or to end.
    pub(super) fn leave(mut self, why: scheduler::Gone) {
        self.catch_up();
        self.membership.leave(why);
        for (_, job) in self.jobs {
            job.incoming.writer.abandon();
        }
    }

    fn assigned(&mut self, assigned: Assigned) {
        let Assigned { job, number, streaming, asked, writer } = assigned;
        self.numbers.insert(number, job);
        let plain = PlainAnswer::new(streaming);
        let incoming = Incoming::new(writer, asked);
        self.jobs.insert(job, Current { number, plain, incoming });
    }

    fn canceled(&mut self, job: JobId) {
        if let Some(current) = self.jobs.remove(&job) {
            self.numbers.remove(&current.number);
            current.incoming.writer.abandon();
        }
    }

    /// Takes a job out, to end it.
    fn take(&mut self, job: JobId) -> Option<Current> {
        let current = self.jobs.remove(&job)?;
        self.numbers.remove(&current.number);
        self.sender.forget(job);
        Some(current)
    }

    fn text(&mut self, text: &str) {
        match WorkerMessage::decode(text) {
            Ok(message) => self.message(message),
            Err(error) => {
                let problem = error.to_string();
                if self.may_complain() {
                    tracing::warn!(problem, "a bad message of the worker was ignored");
                }
                if let Some(job) = error.request_id.as_deref().and_then(|id| id.parse().ok()) {
                    self.spoil(job, &problem);
                }
            }
        }
    }

    fn message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Pong(pong) => self.membership.load(pong.current_load),
            WorkerMessage::ModelsUpdate(update) => self.models_update(&update),
            WorkerMessage::ResponseChunk(chunk) => {
                self.plain(&chunk.request_id, |current| current.plain_chunk(chunk.chunk));
            }
            WorkerMessage::ResponseComplete(complete) => {
                let Some(current) = self.ending(&complete.request_id) else { return };
                self.plain_complete(current, complete);
            }
            WorkerMessage::Error(error) => self.error(&error),
            WorkerMessage::Register(_) if self.may_complain() => {
                tracing::warn!("a second registration was ignored");
            }
            WorkerMessage::Register(_) => {}
        }
    }

    fn plain_complete(&mut self, current: Current, complete: ResponseComplete) {
        let (status, body) = (complete.status_code, current.plain_body(&complete));
        let learns =
            self.served.may_learn(&current.incoming.asked) && !current.incoming.writer.has_begun();
        if learns && current.incoming.asked.is_unserved(status, body) {
            return self.unserved(current);
        }
        current.plain_complete(complete);
    }

    /// The endpoint that a job was sent to is not there: it goes on in another shape.
    fn unserved(&mut self, current: Current) {
        let endpoint = current.incoming.asked.endpoint;
        if self.served.lacks(endpoint) {
            tracing::info!(%endpoint, "the worker's backend does not serve this: translating");
            self.membership.endpoints(self.served.endpoints());
        }
        current.incoming.writer.unserved();
    }

    fn models_update(&mut self, update: &ModelsUpdate) {
        if let Some(endpoints) = update.endpoints {
            self.served.told(endpoints);
            self.membership.endpoints(endpoints);
        }
        let (models, warnings) = normalise_models(&update.models);
        let (models, more) = self.place.change_models(models);
        for warning in warnings.into_iter().chain(more) {
            if self.may_complain() {
                tracing::warn!(%warning, "models update");
            }
        }
        if self.may_complain() {
            tracing::info!(models = models.len(), "the worker's models changed");
        }
        self.membership.models(self.place.names(&models), update.current_load);
    }

    /// Whether one more line may be logged about messages that belong to none of this server's jobs.
    fn may_complain(&mut self) -> bool {
        self.complaints.may_make(Instant::now())
    }

    fn error(&mut self, error: &WorkerError) {
        let WorkerError { request_id, code, message } = error;
        let (code, words) = (clip(code, MAX_WORDS), clip(message, MAX_WORDS));
        match request_id.as_deref() {
            None if self.may_complain() => {
                tracing::warn!(code, words, "the worker reports an error");
            }
            None => {}
            Some(id) => {
                if let Some(current) = self.ending(id) {
                    tracing::warn!(request_id = id, code, words, "the worker failed a job");
                    current.incoming.writer.fail(&format!("{code}: {words}"));
                }
            }
        }
    }

    /// Passes part of an answer on; what the exchange says of it may end the job.
    fn plain(&mut self, id: &str, pass: impl FnOnce(&mut Current) -> Result<(), Stop>) {
        let job = id.parse::<JobId>().ok();
        match job.and_then(|job| self.jobs.get_mut(&job).map(|current| (job, current))) {
            Some((job, current)) => match pass(current) {
                Ok(()) => {}
                Err(Stop::Gone(gone)) => self.unwanted(job, gone),
                Err(Stop::TooLong) => self.spoil(job, "the worker's answer is too long"),
            },
            None => {
                tracing::debug!(request_id = clip(id, MAX_WORDS), "a late message was ignored");
            }
        }
    }

    fn ending(&mut self, id: &str) -> Option<Current> {
        let current = id.parse().ok().and_then(|job| self.take(job));
        if current.is_none() {
            tracing::debug!(request_id = clip(id, MAX_WORDS), "a late message was ignored");
        }
        current
    }

    fn binary(&mut self, bytes: Bytes) {
        match WorkerFrame::decode(bytes) {
            Ok(frame) => self.worker_frame(frame),
            Err(error) => {
                let problem = error.to_string();
                if self.may_complain() {
                    tracing::warn!(problem, "a bad frame of the worker was ignored");
                }
                let job = error.job.and_then(|number| self.numbers.get(&number).copied());
                if let Some(job) = job {
                    self.spoil(job, &problem);
                }
            }
        }
    }

    fn worker_frame(&mut self, frame: WorkerFrame) {
        let Some(job) = self.numbers.get(&frame.job()).copied() else {
            tracing::debug!(number = frame.job(), "a late frame was ignored");
            return;
        };
        match frame {
            WorkerFrame::Head { head, .. } => self.binary_head(job, &head),
            WorkerFrame::Chunk { bytes, .. } => self.binary_chunk(job, bytes),
            WorkerFrame::End { end, .. } => self.binary_end(job, &end),
            WorkerFrame::Fail { failure, .. } => {
                let Some(current) = self.take(job) else { return };
                let code = clip(failure.code.as_str(), MAX_WORDS);
                let words = clip(&failure.message, MAX_WORDS);
                tracing::warn!(request_id = %job, code, words, "the worker failed a job");
                match failure.code {
                    FailureCode::Draining if !current.incoming.writer.has_begun() => {
                        current.incoming.writer.decline();
                    }
                    _ => current.incoming.writer.fail(words),
                }
            }
        }
    }

    fn binary_head(&mut self, job: JobId, head: &ResponseHead) {
        let headers = head.headers.iter().map(|(name, value)| (&**name, header_bytes(value)));
        match head::head(head.status_code, headers) {
            Err(bad) => self.spoil(job, &bad.to_string()),
            Ok(head) => {
                let Some(current) = self.jobs.get_mut(&job) else { return };
                if let Err(gone) = current.incoming.head(head, self.served) {
                    self.unwanted(job, gone);
                }
            }
        }
    }

    fn binary_chunk(&mut self, job: JobId, bytes: Bytes) {
        let Some(current) = self.jobs.get_mut(&job) else { return };
        if !current.incoming.has_head() {
            return self.spoil(job, "the worker sent a chunk before the head");
        }
        if let Err(gone) = current.incoming.chunk(bytes) {
            self.unwanted(job, gone);
        }
    }

    fn binary_end(&mut self, job: JobId, end: &ResponseEnd) {
        let Some(current) = self.take(job) else { return };
        if current.incoming.is_unserved() {
            return self.unserved(current);
        }
        if let Some(counts) = end.token_counts {
            current.incoming.writer.report(usage(protocol::usage::Usage::from(counts)));
        }
        current.incoming.end();
    }

    /// A job whose frame was bad: it fails, and the worker need not go on with it.
    fn spoil(&mut self, job: JobId, why: &str) {
        if let Some(current) = self.take(job) {
            self.sender.stop(job, CancelReason::WorkerDisconnect);
            current.incoming.writer.fail(why);
        }
    }

    /// A job that nobody reads any more.
    fn unwanted(&mut self, job: JobId, gone: ReaderGone) {
        match gone {
            // The cancellation is on its way, or the job is over: nothing is lost.
            ReaderGone::Over => {
                if let Some(current) = self.jobs.remove(&job) {
                    self.numbers.remove(&current.number);
                    current.incoming.writer.abandon();
                }
            }
            ReaderGone::Unreadable => self.spoil(job, NO_SENSE),
            ReaderGone::Refused => {
                if let Some(current) = self.take(job) {
                    self.sender.stop(job, CancelReason::WorkerDisconnect);
                    current.incoming.refused();
                }
            }
            ReaderGone::Stalled => {
                if let Some(current) = self.jobs.remove(&job) {
                    self.numbers.remove(&current.number);
                    current.incoming.writer.stalled();
                }
            }
        }
    }
}

pub(super) fn usage(usage: protocol::usage::Usage) -> Usage {
    let protocol::usage::Usage { prompt_tokens, completion_tokens } = usage;
    Usage { estimated: false, prompt_tokens, completion_tokens }
}
