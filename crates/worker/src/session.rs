//! What a server's messages mean for one link. Pure: decoded messages in, actions out.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::relay::{
    Cancel, FailureCode, FrameError, GracefulShutdown, JobFailure, MessageError, Problem,
    RegisterAck, Request, RequestHead, ServerFrame, ServerMessage, header_bytes,
};

/// The longest request body that is taken, in bytes.
pub(crate) const MAX_BODY: u64 = 1024 * 1024 * 1024;

/// Jobs beyond the announced number that are still taken: a server counts a job as over when it
/// cancels it, and its next one may be here before the canceled one has ended.
const SLACK: usize = 8;

/// How requests and answers travel on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON text, as stock servers speak it.
    Json,
    /// Binary frames, between two Warrens.
    Binary,
}

/// A job that is taken, complete with its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The server's number in the binary form, else one of our own.
    pub(crate) number: u32,
    pub(crate) request_id: String,
    pub(crate) model: String,
    /// With the query.
    pub(crate) path: String,
    pub(crate) streaming: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<Bytes>,
}

/// What the link has to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begin this job.
    Start(Order),
    /// Stop this job, which is running, and have it say so.
    Stop { number: u32, why: JobFailure },
    /// Tell the server that it will not get an answer for this job, of which nothing runs.
    Decline { number: u32, request_id: String, path: String, why: JobFailure },
    /// Let this job send more.
    Credit { number: u32, bytes: u32 },
    /// Answer a ping.
    Pong { timestamp: Option<u64> },
    /// The server has accepted the registration.
    Registered(RegisterAck),
    /// Ask the backend for its models and report them.
    Refresh,
    /// The server drains. It closes when the last job is over.
    Drain { reason: Option<String>, timeout: Option<Duration> },
}

/// One link's jobs, and whether it takes more.
#[derive(Debug)]
pub(crate) struct Session {
    form: Form,
    max_jobs: usize,
    draining: bool,
    last_number: u32,
    jobs: HashMap<u32, Job>,
    numbers: HashMap<String, u32>,
}

#[derive(Debug)]
struct Job {
    request_id: String,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// So many bytes of the body are missing.
    Collecting {
        order: Order,
        missing: u64,
    },
    Running,
}

impl Session {
    pub(crate) fn new(form: Form, max_concurrent: u32) -> Self {
        Self {
            form,
            max_jobs: max_concurrent as usize + SLACK,
            draining: false,
            last_number: 0,
            jobs: HashMap::new(),
            numbers: HashMap::new(),
        }
    }

    /// Takes nothing new from now on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// How many jobs are not over.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// A job's task has ended.
    pub(crate) fn ended(&mut self, number: u32) {
        if let Some(job) = self.jobs.remove(&number) {
            self.numbers.remove(&job.request_id);
        }
    }

    /// A text message.
    pub(crate) fn on_message(
        &mut self,
        message: Result<ServerMessage, MessageError>,
    ) -> Option<Action> {
        match message {
            Ok(ServerMessage::RegisterAck(ack)) => Some(Action::Registered(ack)),
            Ok(ServerMessage::Request(request)) => self.on_request(request),
            Ok(ServerMessage::Cancel(cancel)) => self.on_cancel(&cancel),
            Ok(ServerMessage::Ping(ping)) => Some(Action::Pong { timestamp: ping.timestamp_unix_ms }),
            Ok(ServerMessage::GracefulShutdown(shutdown)) => Some(self.on_shutdown(shutdown)),
            Ok(ServerMessage::ModelsRefresh(_)) => Some(Action::Refresh),
            Err(error) => self.on_bad_message(error),
        }
    }

    /// A binary message.
    pub(crate) fn on_frame(&mut self, frame: Result<ServerFrame, FrameError>) -> Option<Action> {
        if self.form == Form::Json {
            tracing::warn!("a binary frame on a link of text was ignored");
            return None;
        }
        match frame {
            Ok(ServerFrame::Request { job, head, body }) => self.on_head(job, head, body),
            Ok(ServerFrame::Body { job, piece }) => self.on_piece(job, piece),
            Ok(ServerFrame::Credit { job, bytes }) => self.on_credit(job, bytes),
            Err(FrameError { job: Some(number), problem }) => {
                tracing::warn!(number, "a bad frame: {problem}");
                self.give_up(number, bad_request(format!("a frame of this job is bad: {problem}")))
            }
            Err(error) => {
                tracing::warn!("a bad frame was ignored: {error}");
                None
            }
        }
    }

    fn on_request(&mut self, request: Request) -> Option<Action> {
        if self.form == Form::Binary {
            tracing::warn!(request.request_id, "a request as text on a binary link was ignored");
            return None;
        }
        self.last_number = self.last_number.wrapping_add(1);
        let order = Order {
            number: self.last_number,
            request_id: request.request_id,
            model: request.model,
            path: request.endpoint_path,
            streaming: request.is_streaming,
            headers: headers(&request.headers),
            body: vec![Bytes::from(request.body)],
        };
        self.take(order)
    }

    fn on_head(&mut self, number: u32, head: RequestHead, body: Bytes) -> Option<Action> {
        let order = Order {
            number,
            request_id: head.request_id,
            model: head.model,
            path: head.endpoint_path,
            streaming: head.is_streaming,
            headers: headers(head.headers.iter().map(|(name, value)| (name, value))),
            body: Vec::new(),
        };
        if head.body_len > MAX_BODY {
            let why = bad_request(format!("a body of {} bytes is too large", head.body_len));
            return self.refuse(order, why);
        }
        match self.take(order)? {
            // Its first piece is here already; nothing else is known of it yet.
            Action::Start(order) if head.body_len > 0 || !body.is_empty() => {
                let job = Phase::Collecting { order, missing: head.body_len };
                self.jobs.get_mut(&number)?.phase = job;
                self.on_piece(number, body)
            }
            other => Some(other),
        }
    }

    /// Takes an order, unless it is there already or there is no room for it.
    fn take(&mut self, order: Order) -> Option<Action> {
        if self.numbers.contains_key(&order.request_id) || self.jobs.contains_key(&order.number) {
            tracing::warn!(order.request_id, "a request that is here already was ignored");
            return None;
        }
        if let Some(why) = self.reason_to_refuse(&order) {
            return self.refuse(order, why);
        }
        self.numbers.insert(order.request_id.clone(), order.number);
        let job = Job { request_id: order.request_id.clone(), phase: Phase::Running };
        self.jobs.insert(order.number, job);
        Some(Action::Start(order))
    }

    fn reason_to_refuse(&self, order: &Order) -> Option<JobFailure> {
        if self.draining {
            return Some(failure(FailureCode::Draining, "this worker is draining"));
        }
        if self.jobs.len() >= self.max_jobs {
            return Some(failure(FailureCode::Draining, "this worker has no room"));
        }
        (!is_served(&order.path))
            .then(|| bad_request("only paths below /v1/ are served".to_owned()))
    }

    fn refuse(&self, order: Order, why: JobFailure) -> Option<Action> {
        tracing::warn!(order.request_id, "a request was declined: {}", why.message);
        let Order { number, request_id, path, .. } = order;
        Some(Action::Decline { number, request_id, path, why })
    }

    fn on_piece(&mut self, number: u32, piece: Bytes) -> Option<Action> {
        // What comes after a job's end was on its way when it ended.
        let job = self.jobs.get_mut(&number)?;
        let Phase::Collecting { order, missing } = &mut job.phase else {
            let more = bad_request("more body than announced".to_owned());
            return if piece.is_empty() { None } else { self.give_up(number, more) };
        };
        let Some(left) = missing.checked_sub(piece.len() as u64) else {
            return self.give_up(number, bad_request("more body than announced".to_owned()));
        };
        *missing = left;
        if !piece.is_empty() {
            order.body.push(piece);
        }
        if left > 0 {
            return None;
        }
        let order = std::mem::take(order);
        job.phase = Phase::Running;
        Some(Action::Start(order))
    }

    fn on_credit(&self, number: u32, bytes: u32) -> Option<Action> {
        self.jobs.contains_key(&number).then_some(Action::Credit { number, bytes })
    }

    fn on_cancel(&mut self, cancel: &Cancel) -> Option<Action> {
        tracing::debug!(cancel.request_id, reason = %cancel.reason, "canceled");
        let number = *self.numbers.get(&cancel.request_id)?;
        let message = format!("canceled: {}", cancel.reason);
        self.give_up(number, JobFailure { code: FailureCode::Canceled, message })
    }

    /// Ends a job, or declines one of which nothing is known here.
    fn give_up(&mut self, number: u32, why: JobFailure) -> Option<Action> {
        match self.jobs.get(&number).map(|job| &job.phase) {
            Some(Phase::Running) => Some(Action::Stop { number, why }),
            Some(Phase::Collecting { order, .. }) => {
                let (request_id, path) = (order.request_id.clone(), order.path.clone());
                self.ended(number);
                Some(Action::Decline { number, request_id, path, why })
            }
            None => {
                let (request_id, path) = (String::new(), String::new());
                Some(Action::Decline { number, request_id, path, why })
            }
        }
    }

    fn on_shutdown(&mut self, shutdown: GracefulShutdown) -> Action {
        self.draining = true;
        let timeout = shutdown.drain_timeout_secs.map(Duration::from_secs);
        Action::Drain { reason: shutdown.reason, timeout }
    }

    /// A bad message costs its job at most.
    fn on_bad_message(&mut self, error: MessageError) -> Option<Action> {
        let kind = error.kind.as_deref().unwrap_or("none");
        tracing::warn!(kind, request_id = error.request_id, "a bad message: {error}");
        let request_id = error.request_id?;
        let why = bad_request(format!("the message about this request is bad: {}", error.problem));
        match (error.problem, kind) {
            (Problem::UnknownType, _) => None,
            (_, "cancel") => {
                let number = *self.numbers.get(&request_id)?;
                self.give_up(number, failure(FailureCode::Canceled, "canceled"))
            }
            (_, "request") if self.form == Form::Json && !self.numbers.contains_key(&request_id) => {
                Some(Action::Decline { number: 0, request_id, path: String::new(), why })
            }
            _ => None,
        }
    }
}

fn failure(code: FailureCode, message: &str) -> JobFailure {
    JobFailure { code, message: message.to_owned() }
}

fn bad_request(message: String) -> JobFailure {
    JobFailure { code: FailureCode::BadRequest, message }
}

/// Whether a path belongs to what is lent: the consumer APIs, and nothing else that a model
/// server may offer to who is beside it, such as the deletion of models.
fn is_served(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let plain = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    plain.starts_with("/v1/") && !plain.split('/').any(|part| part == "..")
}

/// The headers that can be sent; a name or value that cannot is dropped.
fn headers<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::from_bytes(&header_bytes(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            // Over the map's own bound there is nothing more to do for it.
            let _ = headers.try_append(name, value);
        }
    }
    headers
}
