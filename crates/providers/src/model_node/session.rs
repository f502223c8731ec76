//! Tasks out, results in.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use base::{Endpoint, JobId};
use http::{Method, StatusCode};
use protocol::{
    json::clip,
    node::{ResultFrame, Stop},
    openai::error_body,
};
use scheduler::{AnswerWriter, Assignment, Gone, Membership, ReaderGone};
use tokio::time::Instant;
use translate::{
    BadRequest, Context,
    chat_node::{self, Next},
};
use wire::{Frame, Outbox};

use super::{
    numbers::Numbers,
    task::{Current, Trouble},
};
use crate::{
    complaints::Complaints,
    incoming::{NO_SENSE, REFUSED},
    notes::Note,
    refusal::{answer_error, cannot_ask},
};

/// The longest task that a node is sent, in bytes: stock nodes break the connection over a longer
/// message.
pub(super) const MAX_TASK: usize = 1024 * 1024;

/// The longest piece of text that a node may send at once, in bytes.
pub(super) const MAX_PIECE: usize = 4 * 1024 * 1024;

/// A node's words are cut to so many bytes before they are logged.
const MAX_WORDS: usize = 200;

/// One node: its tasks, and how its results reach their exchanges.
pub(super) struct Session {
    membership: Membership,
    outbox: Outbox,
    numbers: Arc<Numbers>,
    tasks: HashMap<i32, Current>,
    ids: HashMap<JobId, i32>,
    /// Since when it has had work without a pause.
    busy: Option<Instant>,
    complaints: Complaints,
}

impl Session {
    pub(super) fn new(membership: Membership, outbox: Outbox, numbers: Arc<Numbers>) -> Self {
        Self {
            membership,
            outbox,
            numbers,
            tasks: HashMap::new(),
            ids: HashMap::new(),
            busy: None,
            complaints: Complaints::new(Instant::now()),
        }
    }

    /// Since when the node has had work without a pause, if it has any.
    pub(super) fn busy(&self) -> Option<Instant> {
        self.busy
    }

    /// Takes in what the scheduler has decided. Whether the link is to be closed.
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

    /// Takes in one frame. Whatever is wrong with it costs at most the task it is about.
    pub(super) fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Text(text) => self.text(text.as_str()),
            Frame::Binary(bytes) => match ResultFrame::decode(bytes) {
                Ok(result) => self.result(&result),
                Err(short) if self.may_complain() => {
                    tracing::warn!(%short, "a frame of the node was ignored");
                }
                Err(_) => {}
            },
        }
    }

    /// The node is gone: its jobs are the scheduler's to move or to end.
    pub(super) fn leave(mut self, unseen: Vec<Note>, why: Gone) {
        for note in unseen {
            match note {
                Note::Assigned(unsent) => unsent.answer.abandon(),
                Note::Canceled(job) => drop(self.take_job(job).map(|task| task.writer.abandon())),
                Note::Retired => {}
            }
        }
        self.membership.leave(why);
        for (_, task) in self.tasks {
            task.writer.abandon();
        }
    }

    fn assigned(&mut self, assignment: Assignment) {
        let Assignment { job, request, endpoint, answer: writer, .. } = assignment;
        if request.method != Method::POST {
            return cannot_ask(job, writer, &request.method);
        }
        if endpoint != Endpoint::ChatCompletions {
            tracing::warn!(request_id = %job, %endpoint, "a job in a shape that no node serves");
            return writer.unserved();
        }
        let order = match chat_node::request(&request.body) {
            Ok(order) => order,
            Err(bad) => return refuse(job, writer, StatusCode::BAD_REQUEST, &bad),
        };
        let context = context(job, request.model.to_string(), order.streaming());
        let answer = chat_node::answer(&context, &order);
        let id = self.new_id();
        let task = order.task(id, context.created).encode();
        if task.len() > MAX_TASK {
            return refuse(job, writer, StatusCode::PAYLOAD_TOO_LARGE, &too_large());
        }
        if self.outbox.push(task).is_err() {
            // The link is found broken next, and gives the job back.
            tracing::warn!(request_id = %job, "a task could not be sent: the link is closed");
        }
        self.busy.get_or_insert_with(Instant::now);
        self.ids.insert(job, id);
        self.tasks.insert(id, Current { job, writer, answer });
    }

    fn new_id(&self) -> i32 {
        loop {
            let id = self.numbers.next();
            if !self.tasks.contains_key(&id) {
                return id;
            }
        }
    }

    fn canceled(&mut self, job: JobId) {
        if let Some(task) = self.take_job(job) {
            task.writer.abandon();
        }
    }

    /// Takes out a task that the node has not finished, and stops it.
    fn take_job(&mut self, job: JobId) -> Option<Current> {
        let id = *self.ids.get(&job)?;
        self.stop(id);
        self.take(id)
    }

    fn take(&mut self, id: i32) -> Option<Current> {
        let task = self.tasks.remove(&id)?;
        self.ids.remove(&task.job);
        if self.tasks.is_empty() {
            self.busy = None;
        }
        Some(task)
    }

    fn stop(&self, id: i32) {
        // A closed link is found closed by its own task.
        let _ = self.outbox.push(Stop { id }.encode());
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() && self.may_complain() {
            let words = clip(text, MAX_WORDS);
            tracing::warn!(words, "text of the node was ignored: results are binary");
        }
    }

    fn result(&mut self, result: &ResultFrame) {
        let id = result.id;
        let Some(task) = self.tasks.get_mut(&id) else { return self.unknown(id) };
        if result.is_end() {
            return self.end(id, Next::More);
        }
        if result.text.len() > MAX_PIECE {
            return self.spoil(id, "its text is too long");
        }
        match task.more(&result.text) {
            Ok(Next::More) => {}
            Ok(Next::Stopped) => {
                self.stop(id);
                self.end(id, Next::Stopped);
            }
            Err(trouble) => self.trouble(id, trouble),
        }
    }

    fn unknown(&mut self, id: i32) {
        if self.may_complain() {
            tracing::warn!(task = id, "a result of a task that the node does not have");
            self.stop(id);
        }
    }

    fn end(&mut self, id: i32, next: Next) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        match task.rest(next) {
            Ok(()) => {
                if let Some(task) = self.take(id) {
                    task.writer.end();
                }
            }
            Err(trouble) => self.trouble(id, trouble),
        }
    }

    fn trouble(&mut self, id: i32, trouble: Trouble) {
        match trouble {
            Trouble::Bad(bad) => self.spoil(id, &bad.to_string()),
            Trouble::Gone(ReaderGone::Unreadable) => self.spoil(id, NO_SENSE),
            Trouble::Gone(ReaderGone::Refused) => self.spoil(id, REFUSED),
            Trouble::Gone(gone) => {
                self.stop(id);
                let Some(task) = self.take(id) else { return };
                match gone {
                    ReaderGone::Stalled => task.writer.stalled(),
                    // The cancellation is on its way, or the job is over: nothing is lost.
                    _ => task.writer.abandon(),
                }
            }
        }
    }

    /// A task whose result was bad: it fails, and the node need not go on with it.
    fn spoil(&mut self, id: i32, why: &str) {
        self.stop(id);
        if let Some(task) = self.take(id) {
            tracing::warn!(request_id = %task.job, why, "the node failed a task");
            task.writer.fail(why);
        }
    }

    fn may_complain(&mut self) -> bool {
        self.complaints.may_make(Instant::now())
    }
}

/// A job that no node can be sent goes to a provider that may be no node. Without one it is answered
/// as its API would refuse it.
fn refuse(job: JobId, writer: AnswerWriter, status: StatusCode, bad: &BadRequest) {
    let Err(writer) = writer.pass_on() else {
        return tracing::debug!(request_id = %job, why = %bad, "a task went to another provider");
    };
    tracing::warn!(request_id = %job, why = %bad, "a task was not sent to the node");
    let param = bad.param.as_deref();
    answer_error(writer, status, error_body(&bad.message, "invalid_request_error", param, None));
}

fn context(job: JobId, model: String, streaming: bool) -> Context {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Context { id: job.digits(), created, model, streaming }
}

fn too_large() -> BadRequest {
    let words = format!("the conversation is too long for a model node: over {MAX_TASK} bytes");
    BadRequest::new("messages", words)
}
