//! A worker's messages and frames, in both forms.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base::{CancelReason, JobId};
use bytes::Bytes;
use http::StatusCode;
use protocol::{
    failure::is_loading,
    json::clip,
    relay::{
        Ping, ServerMessage, WorkerMessage,
        binary::{FailureCode, JobFailure, ResponseEnd, ResponseHead, WorkerFrame},
        message::{ModelsUpdate, ResponseComplete, WorkerError},
        registration::normalise_models,
    },
    usage::Usage,
};
use scheduler::{LeaveReason, Membership, Provider, WriteError};
use tokio::time::Instant;
use wire::Frame;

use super::{
    plain::{AnswerError, PlainJob},
    scope::WorkerScope,
    sender::{NewJob, Sender, SentJob},
};
use crate::{
    complaints::Complaints,
    head::{self, BadHead},
    jobs::Jobs,
    link::{Closes, Codec},
    refusal::cannot_ask,
    served::{Judgement, ServedEndpoints},
};

/// How many bytes of a worker's own text are logged or passed on.
pub(super) const MAX_WORDS: usize = 300;

/// Silent heartbeat intervals after which a worker is lost.
const SILENT_INTERVALS: u32 = 3;

/// Close code: closed in order.
const NORMAL: u16 = 1000;
/// Close code: the worker broke the protocol.
pub(super) const PROTOCOL_ERROR: u16 = 1002;

/// One registered worker: its jobs, and the way of its messages into their exchanges.
pub(super) struct RelayCodec {
    membership: Membership,
    sender: Arc<Sender>,
    served: ServedEndpoints,
    scope: Arc<WorkerScope>,
    heartbeat: Duration,
    /// The jobs, by the number that the binary form gives them.
    jobs: Jobs<u32, PlainJob>,
    complaints: Complaints,
    /// The models of its last update.
    listed: Vec<String>,
}

impl Codec for RelayCodec {
    type Job = NewJob;

    const NAME: &'static str = "worker";
    const CLOSES: Closes = Closes {
        drained: (NORMAL, "graceful shutdown complete"),
        drain_timed_out: (NORMAL, "graceful shutdown timed out"),
        goodbye: (NORMAL, "goodbye"),
        broken: (PROTOCOL_ERROR, "link error"),
        silent: (NORMAL, "worker heartbeat timed out"),
    };

    fn assigned(&mut self, job: NewJob) {
        match job {
            NewJob::Sent(SentJob { id, number, streaming, incoming }) => {
                self.jobs.insert(number, id, PlainJob::new(incoming, streaming));
            }
            NewJob::Unaskable(job, writer, method) => cannot_ask(job, writer, &method),
        }
    }

    fn canceled(&mut self, job: JobId) {
        let Some(number) = self.jobs.name_of(job).copied() else { return };
        if let Some((_, job)) = self.jobs.take(&number) {
            job.incoming.writer.abandon();
        }
    }

    fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Text(text) => self.text(text.as_str()),
            Frame::Binary(bytes) if self.sender.form().is_binary() => self.binary(bytes),
            Frame::Binary(bytes) if self.may_complain() => {
                tracing::warn!(len = bytes.len(), "a binary frame on a JSON link was ignored");
            }
            Frame::Binary(_) => {}
        }
    }

    fn first_check(&self) -> Duration {
        self.heartbeat
    }

    /// Each check that finds the worker alive pings it: the pong reports its load.
    fn check_silence(&mut self, heard: Instant) -> Option<Instant> {
        let now = Instant::now();
        if now.duration_since(heard) >= self.heartbeat * SILENT_INTERVALS {
            return None;
        }
        self.sender.send(&ServerMessage::Ping(Ping {
            timestamp_unix_ms: Some(base::unix_ms(SystemTime::now())),
        }));
        Some(now + self.heartbeat)
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
        self.jobs.into_jobs().for_each(|job| job.incoming.writer.abandon());
    }
}

impl RelayCodec {
    pub(super) fn new(
        membership: Membership,
        sender: Arc<Sender>,
        served: ServedEndpoints,
        scope: Arc<WorkerScope>,
        heartbeat: Duration,
    ) -> Self {
        let complaints = Complaints::new(Instant::now());
        let (jobs, listed) = (Jobs::new(), Vec::new());
        Self { membership, sender, served, scope, heartbeat, jobs, complaints, listed }
    }

    /// Removes a job, to end it. The rest of its request is not sent.
    fn take(&mut self, number: u32) -> Option<(JobId, PlainJob)> {
        let (id, job) = self.jobs.take(&number)?;
        self.sender.forget(id);
        Some((id, job))
    }

    /// The number of the job with this id, which JSON messages use.
    fn number(&self, id: &str) -> Option<u32> {
        let number = id.parse().ok().and_then(|job| self.jobs.name_of(job).copied());
        if number.is_none() {
            tracing::debug!(request_id = clip(id, MAX_WORDS), "a late message was ignored");
        }
        number
    }

    fn text(&mut self, text: &str) {
        match WorkerMessage::decode(text) {
            Ok(message) => self.message(message),
            Err(error) => {
                let problem = error.to_string();
                if self.may_complain() {
                    tracing::warn!(problem, "a bad message of the worker was ignored");
                }
                let job = error.request_id.as_deref().and_then(|id| id.parse().ok());
                if let Some(number) = job.and_then(|job| self.jobs.name_of(job).copied()) {
                    self.spoil(number, &problem);
                }
            }
        }
    }

    fn message(&mut self, message: WorkerMessage) {
        match message {
            WorkerMessage::Pong(pong) => self.membership.load(pong.current_load),
            WorkerMessage::ModelsUpdate(update) => self.models_update(&update),
            WorkerMessage::ResponseChunk(chunk) => {
                let Some(number) = self.number(&chunk.request_id) else { return };
                let Some(job) = self.jobs.get_mut(&number) else { return };
                match job.chunk(chunk.chunk) {
                    Ok(()) => {}
                    Err(AnswerError::Write(error)) => self.unwritten(number, error),
                    Err(AnswerError::TooLong) => {
                        self.spoil(number, "the worker's answer is too long");
                    }
                }
            }
            WorkerMessage::ResponseComplete(complete) => {
                let number = self.number(&complete.request_id);
                let Some((_, job)) = number.and_then(|number| self.take(number)) else { return };
                self.complete(job, complete);
            }
            WorkerMessage::Error(error) => self.error(&error),
            WorkerMessage::ModelDone(done) => self.sender.changes.end(done),
            WorkerMessage::Register(_) if self.may_complain() => {
                tracing::warn!("a second registration was ignored");
            }
            WorkerMessage::Register(_) => {}
        }
    }

    fn complete(&mut self, job: PlainJob, complete: ResponseComplete) {
        // `PlainJob::complete` reports a bad status when it passes the answer on.
        let status = StatusCode::from_u16(complete.status_code).unwrap_or_default();
        let held = (!job.incoming.writer.has_begun()).then(|| job.body(&complete));
        if held.is_some_and(|body| is_loading(complete.status_code, body)) {
            return job.incoming.writer.unready(true);
        }
        match self.served.judge(&job.incoming.shape, status, held, Instant::now()) {
            Judgement::Missing => {
                self.served.unserved(&self.membership, job.incoming, Self::NAME);
            }
            Judgement::Elsewhere => {
                if let Some(job) = job.pass_on() {
                    job.complete(complete);
                }
            }
            Judgement::Answer => job.complete(complete),
        }
    }

    fn models_update(&mut self, update: &ModelsUpdate) {
        // Endpoints come before models: new models dispatch queued jobs at once, in the right
        // shape.
        if self.served.announce(self.sender.form().carried(update.endpoints)) {
            self.membership.endpoints(self.served.endpoints());
        }
        let (models, warnings) = normalise_models(&update.models);
        // There are as many facts as models, which are bounded.
        let facts = models.iter().filter_map(|model| update.facts.get_key_value(model));
        let facts = facts.map(|(model, facts)| (model.clone(), facts.clone().cleaned())).collect();
        // Facts come before models: new models dispatch queued jobs at once, and a job that
        // continues an answer needs the facts.
        self.sender.learn(facts);
        self.membership.memory(&self.sender.facts());
        let (models, more) = self.scope.change_models(models);
        for warning in warnings.into_iter().chain(more) {
            if self.may_complain() {
                tracing::warn!(%warning, "models update");
            }
        }
        // An update may bring new facts only.
        if self.listed != models && self.may_complain() {
            tracing::info!(models = models.len(), "the worker's models changed");
        }
        self.listed.clone_from(&models);
        match update.none_left && models.is_empty() {
            true => self.membership.no_models(update.current_load),
            false => self.membership.models(self.scope.names(&models), update.current_load),
        }
    }

    /// Whether one more line about messages without a job may be logged.
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
                let taken = self.number(id).and_then(|number| self.take(number));
                if let Some((_, job)) = taken {
                    tracing::warn!(request_id = id, code, words, "the worker failed a job");
                    let unreachable = code == FailureCode::BackendUnreachable.as_str();
                    match unreachable && !job.incoming.writer.has_begun() {
                        true => job.incoming.writer.unready(false),
                        false => job.incoming.writer.fail(&format!("{code}: {words}")),
                    }
                }
            }
        }
    }

    fn binary(&mut self, bytes: Bytes) {
        match WorkerFrame::decode(bytes) {
            Ok(frame) => self.worker_frame(frame),
            Err(error) => {
                let problem = error.to_string();
                if self.may_complain() {
                    tracing::warn!(problem, "a bad frame of the worker was ignored");
                }
                if let Some(number) = error.job.filter(|number| self.jobs.contains(number)) {
                    self.spoil(number, &problem);
                }
            }
        }
    }

    fn worker_frame(&mut self, frame: WorkerFrame) {
        let number = frame.job();
        let Some(job) = self.jobs.get_mut(&number) else {
            // Its job was cancelled while the frame was on its way.
            return tracing::debug!(number, "a late frame was ignored");
        };
        match frame {
            WorkerFrame::Head { head, .. } => self.binary_head(number, &head),
            WorkerFrame::Chunk { bytes, .. } => {
                if !job.incoming.has_head() {
                    return self.spoil(number, "the worker sent a chunk before the head");
                }
                if let Err(error) = job.incoming.chunk(bytes) {
                    self.unwritten(number, error);
                }
            }
            WorkerFrame::End { end, .. } => self.binary_end(number, &end),
            WorkerFrame::Whole { .. } if job.incoming.has_head() => {
                self.spoil(number, "the worker sent a whole answer after a head");
            }
            WorkerFrame::Whole { head, body, .. } => self.whole(number, &head, body),
            WorkerFrame::Accepted { .. } => {
                self.membership.acknowledged(job.incoming.writer.job());
            }
            WorkerFrame::Fail { failure, .. } => self.fail(number, &failure),
        }
    }

    /// Ends a job that the worker has given up.
    fn fail(&mut self, number: u32, failure: &JobFailure) {
        let Some((id, job)) = self.take(number) else { return };
        let code = clip(failure.code.as_str(), MAX_WORDS);
        let words = clip(&failure.message, MAX_WORDS);
        tracing::warn!(request_id = %id, code, words, "the worker failed a job");
        let writer = job.incoming.writer;
        match failure.code {
            // The worker is not at fault: it was told to stop taking jobs.
            FailureCode::Draining if !writer.has_begun() => writer.decline(),
            FailureCode::BackendUnreachable if !writer.has_begun() => writer.unready(false),
            FailureCode::EngineFailed => writer.model_failed(words),
            _ => writer.fail(words),
        }
    }

    /// Handles a whole answer: head, body and end.
    fn whole(&mut self, number: u32, head: &ResponseHead, body: Bytes) {
        let Some((_, mut job)) = self.take(number) else { return };
        let head = match checked(head) {
            Ok(head) => head,
            Err(bad) => return job.incoming.writer.fail(&bad.to_string()),
        };
        let written = job.incoming.head(head, &self.served);
        match written.and_then(|()| job.incoming.chunk(body)) {
            Ok(_) => self.served.end(&self.membership, job.incoming, Self::NAME),
            Err(error) => job.incoming.finish(Err(error)),
        }
    }

    fn binary_head(&mut self, number: u32, head: &ResponseHead) {
        match checked(head) {
            Err(bad) => self.spoil(number, &bad.to_string()),
            Ok(head) => {
                let Some(job) = self.jobs.get_mut(&number) else { return };
                if let Err(error) = job.incoming.head(head, &self.served) {
                    self.unwritten(number, error);
                }
            }
        }
    }

    fn binary_end(&mut self, number: u32, end: &ResponseEnd) {
        let Some((_, job)) = self.take(number) else { return };
        if let Some(counts) = end.token_counts {
            job.incoming.writer.report(Usage::from(counts));
        }
        self.served.end(&self.membership, job.incoming, Self::NAME);
    }

    /// Fails a job whose frame was bad; the worker can stop working on it.
    fn spoil(&mut self, number: u32, why: &str) {
        if let Some((id, job)) = self.take(number) {
            self.sender.stop(id, CancelReason::WorkerDisconnect);
            job.incoming.writer.fail(why);
        }
    }

    /// Handles the writer's refusal of the rest of an answer.
    fn unwritten(&mut self, number: u32, error: WriteError) {
        match error {
            WriteError::Unreadable | WriteError::Refused => {
                if let Some((id, job)) = self.take(number) {
                    self.sender.stop(id, CancelReason::WorkerDisconnect);
                    job.incoming.writer.give_up(error);
                }
            }
            // The scheduler will cancel the job, and that tells the worker. The rest of the request
            // stays until then, because `Sender::cancel` finds the job by it.
            WriteError::Over | WriteError::Stalled => {
                if let Some((_, job)) = self.jobs.take(&number) {
                    job.incoming.writer.give_up(error);
                }
            }
        }
    }
}

/// The head of an answer, if it can be sent to a client. Its values share the memory of the frame.
fn checked(head: &ResponseHead) -> Result<scheduler::Head, BadHead> {
    head::head(head.status_code, head.headers.iter(), |value| head.headers.share(value))
}
