//! The scheduler's side of a worker.
//!
//! Called under the scheduler's lock: everything here puts a message into the link's outbox, or
//! queues a note for the link's task, and returns. The link's task owns the jobs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{CancelReason, Endpoints, FactsByModel, IdMap, JobId, ModelName};
use http::Method;
use protocol::relay::{
    CancelCause, GracefulShutdown, INITIAL_CREDIT, ModelsRefresh, ServerMessage,
    binary::{ServerFrame, Version},
    message::Cancel,
};
use scheduler::{
    AnswerWriter, Assignment, Provider, Terms,
    exchange::CreditSink,
    provider::{ModelChange, ModelChangeError},
};
use wire::{Outbox, OutboxClosed};

use super::{
    model_changes::ModelChanges,
    request::{BinaryRequest, PlainRequest, UnsentRequest},
};
use crate::{
    incoming::Incoming,
    member::Member,
    notes::{AssignedJob, Notes},
    refusal::cannot_ask,
    served::RequestShape,
};

/// Credit is returned in portions of this size, to save messages.
const CREDIT_PORTION: u32 = INITIAL_CREDIT / 4;

/// The form of jobs on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON messages, as in the spec.
    Plain,
    /// Binary frames, between two Warrens.
    Binary(Version),
}

impl Form {
    pub(super) fn of(version: Option<Version>) -> Self {
        version.map_or(Self::Plain, Self::Binary)
    }

    pub(super) fn is_binary(self) -> bool {
        self != Self::Plain
    }

    /// The announced endpoints that this form can carry. JSON messages carry only text.
    pub(super) fn carried(self, announced: Option<Endpoints>) -> Option<Endpoints> {
        if self.is_binary() { announced } else { announced.map(Endpoints::as_text) }
    }
}

/// The scheduler's side of a link.
pub(super) struct Sender {
    name: String,
    form: Form,
    member: Option<Member>,
    outbox: Outbox,
    unsent: Mutex<Unsent>,
    pub(super) notes: Notes<NewJob>,
    credit: Arc<CreditMessages>,
    /// The facts that the worker reports about its models.
    facts: Mutex<Arc<FactsByModel>>,
    /// Whether the worker loads and unloads models on request.
    loads_models: bool,
    pub(super) changes: ModelChanges,
}

/// The requests of unfinished jobs, of which a part may still be unsent.
#[derive(Default)]
struct Unsent {
    last_number: u32,
    requests: IdMap<JobId, UnsentRequest>,
}

/// A job on its way to the link's task.
pub(super) enum NewJob {
    /// It was sent to the worker.
    Sent(SentJob),
    /// The protocol cannot carry this method: nothing was sent to the worker.
    Unaskable(JobId, AnswerWriter, Method),
}

pub(super) struct SentJob {
    pub(super) id: JobId,
    pub(super) number: u32,
    pub(super) streaming: bool,
    pub(super) incoming: Incoming,
}

impl AssignedJob for NewJob {
    fn id(&self) -> JobId {
        match self {
            Self::Sent(sent) => sent.id,
            Self::Unaskable(id, ..) => *id,
        }
    }

    fn abandon(self) {
        match self {
            Self::Sent(sent) => sent.incoming.writer.abandon(),
            Self::Unaskable(job, writer, method) => cannot_ask(job, writer, &method),
        }
    }
}

/// Sends credit as bytes are read.
struct CreditMessages(Outbox);

impl CreditSink for CreditMessages {
    fn credit(&self, number: u32, bytes: u32) {
        let frame = ServerFrame::Credit { job: number, bytes };
        // This frame is the same in every version.
        ignore_closed(self.0.push(frame.encode(Version::NEWEST)));
    }
}

impl Sender {
    pub(super) fn new(
        name: String,
        form: Form,
        member: Option<Member>,
        loads_models: bool,
        outbox: Outbox,
    ) -> Self {
        let credit = Arc::new(CreditMessages(outbox.clone()));
        let (unsent, notes, facts) = (Mutex::default(), Notes::new(), Mutex::default());
        let changes = ModelChanges::default();
        Self { name, form, member, outbox, unsent, notes, credit, facts, loads_models, changes }
    }

    /// Stores the facts that the worker reports about its models.
    pub(super) fn learn(&self, facts: FactsByModel) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts.into();
    }

    /// The form of jobs on this link.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Drops the rest of a request that need not be sent: the worker has finished the job.
    pub(super) fn forget(&self, job: JobId) {
        let unsent = self.lock().requests.remove(&job);
        if let Some(unsent) = unsent {
            unsent.clear();
        }
    }

    /// Sends a control message.
    pub(super) fn send(&self, message: &ServerMessage) {
        ignore_closed(self.outbox.push(message.encode()));
    }

    /// Tells the worker to stop a job.
    pub(super) fn stop(&self, job: JobId, reason: CancelReason) {
        let reason = CancelCause::Known(reason);
        self.send(&ServerMessage::Cancel(Cancel { request_id: job.to_string(), reason }));
    }

    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        let Assignment { job, request, endpoint, alternatives, answer, .. } = assignment;
        if request.method != Method::POST {
            return self.notes.assign(NewJob::Unaskable(job, answer, request.method.clone()));
        }
        let (streaming, shape) =
            (request.streaming, RequestShape::new(endpoint, alternatives, &request));
        let rest = UnsentRequest::new(request);
        let mut unsent = self.lock();
        unsent.last_number = unsent.last_number.wrapping_add(1);
        let number = unsent.last_number;
        unsent.requests.insert(job, rest.clone());
        drop(unsent);
        if self.form.is_binary() {
            let sink: Arc<dyn CreditSink> = Arc::<CreditMessages>::clone(&self.credit);
            answer.give_credit(sink, number, CREDIT_PORTION);
        }
        // The note comes before the request, so that the link knows the job before any frame can
        // answer it.
        let incoming = Incoming::new(answer, shape);
        self.notes.assign_sent(NewJob::Sent(SentJob { id: job, number, streaming, incoming }));
        let source: Box<dyn wire::FrameSource> = match self.form {
            Form::Plain => Box::new(PlainRequest { id: job, unsent: rest }),
            Form::Binary(version) => Box::new(BinaryRequest::new(version, number, job, rest)),
        };
        ignore_closed(self.outbox.push_source(source));
    }

    fn facts(&self) -> Arc<FactsByModel> {
        Arc::clone(&self.facts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn loads_models(&self) -> bool {
        self.loads_models
    }

    fn change_model(&self, change: ModelChange) {
        if !self.loads_models {
            return change.end(Err(ModelChangeError::NotItsWork));
        }
        if let Some(message) = self.changes.begin(change) {
            self.send(&message);
        }
    }

    fn cancel(&self, job: JobId, reason: CancelReason) {
        // A job that the protocol could not carry is not in the list, and the worker does not know
        // it.
        let Some(rest) = self.lock().requests.remove(&job) else { return };
        rest.clear();
        self.notes.cancel(job);
        self.stop(job, reason);
    }

    fn drain(&self, reason: &str, grace: Duration) {
        self.send(&ServerMessage::GracefulShutdown(GracefulShutdown {
            reason: Some(reason.to_owned()),
            drain_timeout_secs: Some(grace.as_secs().max(1)),
        }));
    }

    fn retire(&self, clean: bool) {
        self.notes.retire(clean);
    }

    fn refresh(&self, reason: &str) {
        let reason = Some(reason.to_owned());
        self.send(&ServerMessage::ModelsRefresh(ModelsRefresh { reason }));
    }

    fn terms(&self, model: ModelName) -> Terms {
        match &self.member {
            Some(member) => member.terms(model),
            None => Terms { model, edit: None },
        }
    }
}

/// Ignores a closed link: the link's own task notices it and then gives back all its jobs.
fn ignore_closed(_: Result<(), OutboxClosed>) {}
