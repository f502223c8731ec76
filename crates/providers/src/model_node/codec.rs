//! Sends tasks, receives results.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use base::{Endpoint, JobId};
use http::{Method, StatusCode};
use protocol::{
    json::clip,
    node::{ResultFrame, Stop, close},
    openai::error_body,
};
use scheduler::{AnswerWriter, Assignment, LeaveReason, Membership};
use tokio::time::Instant;
use translate::{
    BadRequest, Context,
    chat_node::{self, Next},
};
use wire::{Frame, Outbox};

use super::task::{AnswerError, Numbers, Task};
use crate::{
    complaints::Complaints,
    jobs::Jobs,
    link::{Closes, Codec},
    refusal::cannot_ask,
};

/// The longest task that a node is sent, in bytes: stock nodes break the connection on a longer
/// message.
pub(super) const MAX_TASK: usize = 1024 * 1024;

/// The longest piece of text that a node may send at once, in bytes.
const MAX_PIECE: usize = 4 * 1024 * 1024;

/// How many bytes of a node's own text are logged.
const MAX_WORDS: usize = 200;

/// A node with work is lost after this much silence. It sends a sign of life every 10 s.
const SILENCE: Duration = Duration::from_secs(35);

/// A node without work is lost after this much silence: some nodes send no sign of life while they
/// are idle, but a dead connection must not stay for ever.
const IDLE_SILENCE: Duration = Duration::from_secs(300);

/// One node: its tasks, and the way of its results into their exchanges.
pub(super) struct NodeCodec {
    membership: Membership,
    outbox: Outbox,
    numbers: Arc<Numbers>,
    tasks: Jobs<i32, Task>,
    /// The start of its current uninterrupted work.
    busy: Option<Instant>,
    complaints: Complaints,
}

impl Codec for NodeCodec {
    type Job = Assignment;

    const NAME: &'static str = "node";
    const CLOSES: Closes = Closes {
        drained: close::NORMAL,
        drain_timed_out: close::NORMAL,
        goodbye: close::NORMAL,
        broken: close::BROKEN,
        silent: close::SILENT,
    };

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
            // The link's task will find the link broken and give the job back.
            tracing::warn!(request_id = %job, "a task could not be sent: the link is closed");
        }
        self.busy.get_or_insert_with(Instant::now);
        self.tasks.insert(id, job, Task { writer, answer });
    }

    fn canceled(&mut self, job: JobId) {
        let Some(id) = self.tasks.name_of(job).copied() else { return };
        if let Some((_, task)) = self.stop(id) {
            task.writer.abandon();
        }
    }

    fn frame(&mut self, frame: Frame) {
        match frame {
            // Stock nodes send an empty text as a sign of life.
            Frame::Text(text) if text.is_empty() => {}
            Frame::Text(text) => {
                if self.may_complain() {
                    let words = clip(text.as_str(), MAX_WORDS);
                    tracing::warn!(words, "text of the node was ignored: results are binary");
                }
            }
            Frame::Binary(bytes) => match ResultFrame::decode(bytes) {
                Ok(result) => self.result(&result),
                Err(short) if self.may_complain() => {
                    tracing::warn!(%short, "a frame of the node was ignored");
                }
                Err(_) => {}
            },
        }
    }

    fn first_check(&self) -> Duration {
        SILENCE
    }

    fn check_silence(&mut self, heard: Instant) -> Option<Instant> {
        let lost = match self.busy {
            Some(since) => since.max(heard) + SILENCE,
            None => heard + IDLE_SILENCE,
        };
        let now = Instant::now();
        // An idle node may get work in the meantime, which shortens its limit: never check later
        // than that.
        (lost > now).then(|| lost.min(now + SILENCE))
    }

    fn leave(self, why: LeaveReason) {
        self.membership.leave(why);
        self.tasks.into_jobs().for_each(|task| task.writer.abandon());
    }
}

impl NodeCodec {
    pub(super) fn new(membership: Membership, outbox: Outbox, numbers: Arc<Numbers>) -> Self {
        let complaints = Complaints::new(Instant::now());
        Self { membership, outbox, numbers, tasks: Jobs::new(), busy: None, complaints }
    }

    fn new_id(&self) -> i32 {
        loop {
            let id = self.numbers.next();
            if !self.tasks.contains(&id) {
                return id;
            }
        }
    }

    /// Removes an unfinished task and sends the node a stop.
    fn stop(&mut self, id: i32) -> Option<(JobId, Task)> {
        self.send_stop(id);
        self.take(id)
    }

    fn send_stop(&self, id: i32) {
        // The link's own task notices a closed link.
        let _ = self.outbox.push(Stop { id }.encode());
    }

    fn take(&mut self, id: i32) -> Option<(JobId, Task)> {
        let taken = self.tasks.take(&id)?;
        if self.tasks.is_empty() {
            self.busy = None;
        }
        Some(taken)
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
                self.send_stop(id);
                self.end(id, Next::Stopped);
            }
            Err(error) => self.unwritten(id, error),
        }
    }

    fn unknown(&mut self, id: i32) {
        if self.may_complain() {
            tracing::warn!(task = id, "a result of a task that the node does not have");
            self.send_stop(id);
        }
    }

    fn end(&mut self, id: i32, next: Next) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        match task.rest(next) {
            Ok(()) => {
                if let Some((_, task)) = self.take(id) {
                    task.writer.end();
                }
            }
            Err(error) => self.unwritten(id, error),
        }
    }

    fn unwritten(&mut self, id: i32, error: AnswerError) {
        match error {
            AnswerError::Bad(bad) => self.spoil(id, &bad.to_string()),
            AnswerError::Write(error) => {
                if let Some((_, task)) = self.stop(id) {
                    task.writer.give_up(error);
                }
            }
        }
    }

    /// Fails a task whose result was bad; the node can stop working on it.
    fn spoil(&mut self, id: i32, why: &str) {
        if let Some((job, task)) = self.stop(id) {
            tracing::warn!(request_id = %job, why, "the node failed a task");
            task.writer.fail(why);
        }
    }

    fn may_complain(&mut self) -> bool {
        self.complaints.may_make(Instant::now())
    }
}

/// Passes a job that no node can carry to a provider of another protocol. Without one, the job is
/// answered with the error of its API.
fn refuse(job: JobId, writer: AnswerWriter, status: StatusCode, bad: &BadRequest) {
    let Err(writer) = writer.pass_on() else {
        return tracing::debug!(request_id = %job, why = %bad, "a task went to another provider");
    };
    tracing::warn!(request_id = %job, why = %bad, "a task was not sent to the node");
    let param = bad.param.as_deref();
    writer.answer_error(status, error_body(&bad.message, "invalid_request_error", param, None));
}

fn context(job: JobId, model: String, streaming: bool) -> Context {
    let created = base::since_1970(SystemTime::now()).as_secs();
    Context { id: job.digits(), created, model, streaming }
}

fn too_large() -> BadRequest {
    let words = format!("the conversation is too long for a model node: over {MAX_TASK} bytes");
    BadRequest::new("messages", words)
}
