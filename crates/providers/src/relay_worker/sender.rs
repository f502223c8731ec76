//! What the scheduler tells a worker.
//!
//! Called under the scheduler's lock: everything here puts a message into the link's outbox, or a
//! note into its inbox, and returns. The link's own task keeps the jobs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{JobId, ModelName};
use http::Method;
use protocol::relay::{
    CancelReason as WireReason, GracefulShutdown, INITIAL_CREDIT, ModelsRefresh, ServerMessage,
    binary::ServerFrame, message::Cancel,
};
use scheduler::{AnswerWriter, Assignment, CancelReason, Provider, Terms, exchange::CreditSink};
use tokio::sync::Notify;
use wire::{Closed, Outbox};

use super::request::{BinaryRequest, PlainRequest, Unsent};
use crate::{member::Member, served::Asked};

/// Credit is given back in portions of this, to save messages.
const CREDIT_PORTION: u32 = INITIAL_CREDIT / 4;

/// How jobs travel on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON messages, as the spec has them.
    Plain,
    /// Binary frames, between two Warrens.
    Binary,
}

impl Form {
    pub(super) fn of(binary: bool) -> Self {
        if binary { Self::Binary } else { Self::Plain }
    }
}

/// The scheduler's side of a link.
pub(super) struct Sender {
    name: String,
    form: Form,
    /// Who the worker is in its room.
    member: Option<Member>,
    outbox: Outbox,
    inbox: Mutex<Inbox>,
    /// Wakes the link's task for what cannot wait for the worker's next frame.
    pub(super) wake: Notify,
    credit: Arc<CreditOf>,
}

/// What the link's task has not seen yet. Bounded by the worker's capacity: no more jobs than that
/// are assigned at once, and each cancellation, which makes room for the next, wakes the task to
/// take all of it, whether or not the worker's socket moves.
#[derive(Default)]
struct Inbox {
    last_number: u32,
    /// Jobs at the worker, with what it has not been sent of them.
    unsent: HashMap<JobId, Unsent>,
    notes: Vec<Note>,
}

/// What the link's task must know.
pub(super) enum Note {
    /// A job was sent to the worker.
    Assigned(Box<Assigned>),
    /// A job is no longer the worker's.
    Canceled(JobId),
    /// The protocol has no word for this method: the worker was sent nothing.
    Unaskable(JobId, Box<AnswerWriter>, Method),
    /// The drain is over; whether everything was finished.
    Retired(bool),
}

/// A job as it was sent.
pub(super) struct Assigned {
    pub(super) job: JobId,
    pub(super) number: u32,
    pub(super) streaming: bool,
    pub(super) asked: Asked,
    pub(super) writer: AnswerWriter,
}

struct CreditOf(Outbox);

impl CreditSink for CreditOf {
    fn credit(&self, number: u32, bytes: u32) {
        ignore_closed(self.0.push(ServerFrame::Credit { job: number, bytes }.encode()));
    }
}

impl Sender {
    pub(super) fn new(name: String, form: Form, outbox: Outbox) -> Self {
        let credit = Arc::new(CreditOf(outbox.clone()));
        let (inbox, wake) = (Mutex::default(), Notify::new());
        Self { name, form, member: None, outbox, inbox, wake, credit }
    }

    /// The same for a worker in a room.
    pub(super) fn in_room(self, member: Option<Member>) -> Self {
        Self { member, ..self }
    }

    /// How jobs travel on this link.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// What has come since the last call.
    pub(super) fn notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    /// The worker is done with a job: what it was not sent of it yet, it need not be sent.
    pub(super) fn forget(&self, job: JobId) {
        let unsent = self.lock().unsent.remove(&job);
        if let Some(unsent) = unsent {
            unsent.clear();
        }
    }

    /// Sends a control message.
    pub(super) fn say(&self, message: &ServerMessage) {
        ignore_closed(self.outbox.push(message.encode()));
    }

    /// Tells the worker to stop, where the scheduler has not decided so.
    pub(super) fn stop(&self, job: JobId, reason: WireReason) {
        self.say(&ServerMessage::Cancel(Cancel { request_id: job.to_string(), reason }));
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Provider for Sender {
    fn name(&self) -> &str {
        &self.name
    }

    fn assign(&self, assignment: Assignment) {
        let Assignment { job, request, endpoint, alternatives, answer, .. } = assignment;
        if request.method != Method::POST {
            let note = Note::Unaskable(job, Box::new(answer), request.method.clone());
            self.lock().notes.push(note);
            return self.wake.notify_one();
        }
        let streaming = request.streaming;
        let asked = Asked { endpoint, alternatives, model: request.model.as_str().to_owned() };
        let unsent = Unsent::new(request);
        let mut inbox = self.lock();
        inbox.last_number = inbox.last_number.wrapping_add(1);
        let number = inbox.last_number;
        inbox.unsent.insert(job, unsent.clone());
        if self.form == Form::Binary {
            let sink: Arc<dyn CreditSink> = Arc::<CreditOf>::clone(&self.credit);
            answer.give_credit(sink, number, CREDIT_PORTION);
        }
        let assigned = Assigned { job, number, streaming, asked, writer: answer };
        inbox.notes.push(Note::Assigned(Box::new(assigned)));
        drop(inbox);
        let source: Box<dyn wire::FrameSource> = match self.form {
            Form::Plain => Box::new(PlainRequest { id: job, unsent }),
            Form::Binary => Box::new(BinaryRequest::new(number, job, unsent)),
        };
        ignore_closed(self.outbox.push_source(source));
    }

    fn cancel(&self, job: JobId, reason: CancelReason) {
        let mut inbox = self.lock();
        // Of one that it cannot be asked, the worker was told nothing.
        let Some(unsent) = inbox.unsent.remove(&job) else { return };
        inbox.notes.push(Note::Canceled(job));
        drop(inbox);
        unsent.clear();
        self.wake.notify_one();
        self.stop(job, wire_reason(reason));
    }

    fn drain(&self, reason: &str, grace: Duration) {
        self.say(&ServerMessage::GracefulShutdown(GracefulShutdown {
            reason: Some(reason.to_owned()),
            drain_timeout_secs: Some(grace.as_secs().max(1)),
        }));
    }

    fn retire(&self, clean: bool) {
        self.lock().notes.push(Note::Retired(clean));
        self.wake.notify_one();
    }

    fn refresh(&self, reason: &str) {
        let reason = Some(reason.to_owned());
        self.say(&ServerMessage::ModelsRefresh(ModelsRefresh { reason }));
    }

    fn terms(&self, model: ModelName) -> Terms {
        match &self.member {
            Some(member) => member.terms(model),
            None => Terms { model, edit: None },
        }
    }
}

fn wire_reason(reason: CancelReason) -> WireReason {
    match reason {
        CancelReason::ClientDisconnect => WireReason::ClientDisconnect,
        CancelReason::Timeout => WireReason::Timeout,
        CancelReason::GracefulShutdown => WireReason::GracefulShutdown,
        CancelReason::WorkerDisconnect => WireReason::WorkerDisconnect,
        CancelReason::RequeueExhausted => WireReason::RequeueExhausted,
        CancelReason::ServerShutdown => WireReason::ServerShutdown,
    }
}

/// A closed link is found closed by its own task, which then gives all its jobs back.
fn ignore_closed(_: Result<(), Closed>) {}
