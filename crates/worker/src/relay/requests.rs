//! A server's requests on one link (pure): decoded messages in, actions out.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use protocol::relay::{
    Cancel, FailureCode, FrameError, GracefulShutdown, JobFailure, MessageError, ModelMessage,
    Problem, RegisterAck, Request, RequestHead, ServerFrame, ServerMessage,
};

use crate::order::{NOT_SERVED, Order};

/// The longest request body that is taken, in bytes.
pub(crate) const MAX_BODY: u64 = 1024 * 1024 * 1024;

/// How many jobs beyond the announced number are still taken. A server frees a slot when it cancels a
/// job, so its next job may arrive before the cancelled one has ended.
const SLACK: usize = 8;

/// The form of requests and answers on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// JSON text, as stock servers speak it.
    Json,
    /// Binary frames, between two Warrens.
    Binary,
}

/// An action of the codec.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begin this job.
    Start(Order),
    /// Stop this running job. It tells the server itself that it has ended.
    Stop { number: u32, why: JobFailure },
    /// Tell the server that this job, which does not run, gets no answer.
    Decline { number: u32, request_id: String, path: String, why: JobFailure },
    /// Let this job send more bytes.
    Credit { number: u32, bytes: u32 },
    /// Answer a ping.
    Pong { timestamp: Option<u64> },
    /// The server has accepted the registration.
    Registered(RegisterAck),
    /// Ask the backend for its models and report them.
    Refresh,
    /// Load this model, or unload it.
    ChangeModel { number: u32, model: String, loads: bool },
    /// The server drains. It closes the link when the last job has ended.
    Drain { reason: Option<String>, timeout: Option<Duration> },
}

/// The requests of one link, and whether the link takes more.
#[derive(Debug)]
pub(crate) struct Requests {
    form: Form,
    max_jobs: usize,
    draining: bool,
    last_number: u32,
    jobs: HashMap<u32, RequestState>,
    numbers: HashMap<String, u32>,
    /// Whether a job came since the last call of [`Requests::acknowledge`].
    news: bool,
}

#[derive(Debug)]
struct RequestState {
    request_id: String,
    phase: Phase,
    /// How many bytes are still to come of the body of an ignored request that has this job's number.
    ignored: u64,
    /// Whether the server knows that the job has arrived.
    acknowledged: bool,
}

#[derive(Debug)]
enum Phase {
    /// The body is still coming.
    Collecting {
        order: Box<Order>,
        missing: u64,
    },
    Running,
}

impl Requests {
    pub(crate) fn new(form: Form, max_concurrent: u32) -> Self {
        Self {
            form,
            max_jobs: (max_concurrent as usize).saturating_add(SLACK),
            draining: false,
            last_number: 0,
            jobs: HashMap::new(),
            numbers: HashMap::new(),
            news: false,
        }
    }

    /// Whether jobs have come that may have to be acknowledged.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    /// The numbers of the jobs that have come and were not acknowledged before, including jobs
    /// whose body is still coming.
    pub(crate) fn acknowledge(&mut self) -> Vec<u32> {
        self.news = false;
        let fresh = self.jobs.iter_mut().filter(|(_, job)| !job.acknowledged);
        let acknowledged = fresh.map(|(number, job)| {
            job.acknowledged = true;
            *number
        });
        acknowledged.collect()
    }

    /// Takes nothing new from now on.
    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// A job's task has ended. Returns the id of its request.
    pub(crate) fn ended(&mut self, number: u32) -> Option<String> {
        let request_id = self.jobs.remove(&number)?.request_id;
        self.numbers.remove(&request_id);
        Some(request_id)
    }

    /// Handles a text message.
    pub(crate) fn on_message(
        &mut self,
        message: Result<ServerMessage, MessageError>,
    ) -> Option<Action> {
        match message {
            Ok(ServerMessage::RegisterAck(ack)) => Some(Action::Registered(ack)),
            Ok(ServerMessage::Request(request)) => self.on_request(request),
            Ok(ServerMessage::Cancel(cancel)) => self.on_cancel(&cancel),
            Ok(ServerMessage::Ping(ping)) => {
                Some(Action::Pong { timestamp: ping.timestamp_unix_ms })
            }
            Ok(ServerMessage::GracefulShutdown(shutdown)) => Some(self.on_shutdown(shutdown)),
            Ok(ServerMessage::ModelsRefresh(_)) => Some(Action::Refresh),
            Ok(ServerMessage::LoadModel(message)) => self.on_model(message, true),
            Ok(ServerMessage::UnloadModel(message)) => self.on_model(message, false),
            Err(error) => self.on_bad_message(error),
        }
    }

    /// Handles a binary message.
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

    /// Handles a request to load or unload a model. Ignored on a link of text, since only a Warren
    /// may ask for that.
    fn on_model(&self, message: ModelMessage, loads: bool) -> Option<Action> {
        let ModelMessage { number, model } = message;
        (self.form == Form::Binary).then_some(Action::ChangeModel { number, model, loads })
    }

    fn on_request(&mut self, request: Request) -> Option<Action> {
        if self.form == Form::Binary {
            tracing::warn!(request.request_id, "a request as text on a binary link was ignored");
            return None;
        }
        // In the JSON form jobs have no numbers, so they get one here.
        self.last_number = self.last_number.wrapping_add(1);
        let order = Order::from_request(self.last_number, request);
        self.take(order)
    }

    fn on_head(&mut self, number: u32, head: RequestHead, body: Bytes) -> Option<Action> {
        let body_len = head.body_len;
        let order = Order::from_head(number, head);
        // Judged by the announced length, before any of the body is kept.
        if body_len > MAX_BODY {
            let why = bad_request(format!("a body of {body_len} bytes is too large"));
            return self.refuse(order, why);
        }
        let Some(action) = self.take(order) else {
            self.ignore_body(number, body_len.saturating_sub(body.len() as u64));
            return None;
        };
        match action {
            // The head brings the first piece of the body.
            Action::Start(order) if body_len > 0 || !body.is_empty() => {
                let order = Box::new(order);
                let phase = Phase::Collecting { order, missing: body_len };
                self.jobs.get_mut(&number)?.phase = phase;
                self.on_piece(number, body)
            }
            other => Some(other),
        }
    }

    /// Takes an order, unless it is known already or has to be refused.
    fn take(&mut self, order: Order) -> Option<Action> {
        // Starting it a second time would mix two answers, so only the first goes on.
        if self.numbers.contains_key(&order.request_id) || self.jobs.contains_key(&order.number) {
            tracing::warn!(order.request_id, "a request that is here already was ignored");
            return None;
        }
        if let Some(why) = self.reason_to_refuse(&order) {
            return self.refuse(order, why);
        }
        self.numbers.insert(order.request_id.clone(), order.number);
        let request_id = order.request_id.clone();
        let job =
            RequestState { request_id, phase: Phase::Running, ignored: 0, acknowledged: false };
        self.news = true;
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
        (!order.is_served()).then(|| bad_request(NOT_SERVED.to_owned()))
    }

    fn refuse(&self, order: Order, why: JobFailure) -> Option<Action> {
        tracing::debug!(order.request_id, "a request was declined: {}", why.message);
        let Order { number, request_id, path, .. } = order;
        Some(Action::Decline { number, request_id, path, why })
    }

    /// Notes that the rest of the body of an ignored request is still to come. If its number is that of a job,
    /// the pieces must not be taken for that job's.
    fn ignore_body(&mut self, number: u32, bytes: u64) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.ignored = job.ignored.saturating_add(bytes);
        }
    }

    fn on_piece(&mut self, number: u32, piece: Bytes) -> Option<Action> {
        // Pieces may still arrive after their job has ended.
        let job = self.jobs.get_mut(&number)?;
        if let Some(left) = job.ignored.checked_sub(piece.len() as u64).filter(|_| job.ignored > 0)
        {
            job.ignored = left;
            return None;
        }
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
        let order = std::mem::take(&mut **order);
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

    /// Ends a job, or declines one that is unknown.
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

    /// Handles a bad message: it ends its own job at most.
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
            (_, "request")
                if self.form == Form::Json && !self.numbers.contains_key(&request_id) =>
            {
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

#[cfg(test)]
mod tests {
    use base::CancelReason;
    use protocol::relay::{CancelCause, FrameProblem, ModelsRefresh, Ping};

    use super::*;

    fn request(id: &str) -> Request {
        Request {
            request_id: id.to_owned(),
            endpoint_path: "/v1/completions".to_owned(),
            body: "{}".to_owned(),
            ..Request::default()
        }
    }

    fn text(requests: &mut Requests, id: &str) -> Option<Action> {
        requests.on_message(Ok(ServerMessage::Request(request(id))))
    }

    fn cancel(requests: &mut Requests, id: &str) -> Option<Action> {
        let reason = CancelCause::Known(CancelReason::ClientDisconnect);
        requests.on_message(Ok(ServerMessage::Cancel(Cancel { request_id: id.to_owned(), reason })))
    }

    fn frame(job: u32, id: &str, body_len: u64, body: &'static str) -> ServerFrame {
        let head = RequestHead {
            request_id: id.to_owned(),
            endpoint_path: "/v1/completions".to_owned(),
            body_len,
            ..RequestHead::default()
        };
        ServerFrame::Request { job, head, body: body.into() }
    }

    fn piece(requests: &mut Requests, job: u32, piece: &'static str) -> Option<Action> {
        requests.on_frame(Ok(ServerFrame::Body { job, piece: piece.into() }))
    }

    #[test]
    fn a_job_is_acknowledged_once_even_before_its_body_is_here() {
        let mut requests = Requests::new(Form::Binary, 4);
        assert!(!requests.has_news());
        for (job, id) in [(1, "a"), (2, "b"), (3, "c")] {
            requests.on_frame(Ok(frame(job, id, 4, if job == 1 { "{}" } else { "{  }" })));
        }
        requests.ended(3);
        assert!(requests.has_news());
        let mut acknowledged = requests.acknowledge();
        acknowledged.sort_unstable();
        assert_eq!(acknowledged, [1, 2], "the third is over");
        assert!(!requests.has_news() && requests.acknowledge().is_empty());
        piece(&mut requests, 1, "{}");
        assert!(!requests.has_news(), "it is the same job");
    }

    fn bad_text(kind: &str, id: Option<&str>, problem: Problem) -> MessageError {
        let request_id = id.map(str::to_owned);
        MessageError { kind: Some(kind.to_owned()), request_id, problem }
    }

    #[track_caller]
    fn started(action: Option<Action>) -> Order {
        match action {
            Some(Action::Start(order)) => order,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn declined(action: Option<Action>) -> FailureCode {
        match action {
            Some(Action::Decline { why, .. }) => why.code,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn stopped(action: Option<Action>) -> (u32, FailureCode) {
        match action {
            Some(Action::Stop { number, why }) => (number, why.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_as_text_starts_at_once_and_is_canceled_by_its_id() {
        let mut requests = Requests::new(Form::Json, 1);
        let first = started(text(&mut requests, "r-1"));
        let second = started(text(&mut requests, "r-2"));
        assert_eq!((first.body.concat(), first.path.as_str()), (b"{}".to_vec(), "/v1/completions"));
        assert_eq!(stopped(cancel(&mut requests, "r-2")), (second.number, FailureCode::Canceled));
        requests.ended(second.number);
        assert_eq!(cancel(&mut requests, "r-2"), None);
        assert_eq!(requests.jobs(), 1);
    }

    #[test]
    fn a_body_in_pieces_starts_when_it_is_complete() {
        let mut requests = Requests::new(Form::Binary, 1);
        assert_eq!(requests.on_frame(Ok(frame(7, "r-1", 5, "ab"))), None);
        assert_eq!(piece(&mut requests, 7, "c"), None);
        let order = started(piece(&mut requests, 7, "de"));
        assert_eq!((order.number, order.body.concat()), (7, b"abcde".to_vec()));
        assert_eq!(piece(&mut requests, 7, ""), None);
        let credit = requests.on_frame(Ok(ServerFrame::Credit { job: 7, bytes: 9 }));
        assert_eq!(credit, Some(Action::Credit { number: 7, bytes: 9 }));
        let late = requests.on_frame(Ok(ServerFrame::Credit { job: 8, bytes: 9 }));
        assert_eq!(late, None);
    }

    #[test]
    fn a_whole_or_empty_body_starts_at_once() {
        let mut requests = Requests::new(Form::Binary, 2);
        assert_eq!(started(requests.on_frame(Ok(frame(1, "a", 2, "ab")))).body.concat(), b"ab");
        assert!(started(requests.on_frame(Ok(frame(2, "b", 0, "")))).body.is_empty());
    }

    #[test]
    fn more_body_than_announced_costs_the_job() {
        let mut requests = Requests::new(Form::Binary, 4);
        let bad = FailureCode::BadRequest;
        assert_eq!(declined(requests.on_frame(Ok(frame(1, "a", 0, "x")))), bad);
        assert_eq!(requests.on_frame(Ok(frame(2, "b", 2, "x"))), None);
        assert_eq!(declined(piece(&mut requests, 2, "xx")), bad);
        started(requests.on_frame(Ok(frame(3, "c", 1, "x"))));
        assert_eq!(stopped(piece(&mut requests, 3, "x")), (3, bad));
        assert_eq!(requests.jobs(), 1);
    }

    #[test]
    fn a_body_over_the_bound_is_not_waited_for() {
        let mut requests = Requests::new(Form::Binary, 1);
        let code = declined(requests.on_frame(Ok(frame(1, "a", MAX_BODY + 1, "x"))));
        assert_eq!((code, requests.jobs()), (FailureCode::BadRequest, 0));
        assert_eq!(piece(&mut requests, 1, "x"), None);
        assert_eq!(requests.on_frame(Ok(frame(2, "b", MAX_BODY, "x"))), None);
        assert_eq!(requests.jobs(), 1);
    }

    #[test]
    fn a_request_canceled_before_its_body_is_complete_never_starts() {
        let mut requests = Requests::new(Form::Binary, 1);
        requests.on_frame(Ok(frame(1, "a", 2, "x")));
        assert_eq!(declined(cancel(&mut requests, "a")), FailureCode::Canceled);
        assert_eq!(piece(&mut requests, 1, "x"), None);
        assert_eq!(requests.jobs(), 0);
    }

    #[test]
    fn jobs_beyond_the_bound_are_declined() {
        let mut requests = Requests::new(Form::Json, 2);
        for n in 0..2 + SLACK {
            started(text(&mut requests, &format!("r-{n}")));
        }
        assert_eq!(declined(text(&mut requests, "more")), FailureCode::Draining);
        assert_eq!(requests.jobs(), 2 + SLACK);
    }

    #[test]
    fn a_repeated_request_is_ignored() {
        let mut requests = Requests::new(Form::Binary, 4);
        started(requests.on_frame(Ok(frame(1, "a", 0, ""))));
        assert_eq!(requests.on_frame(Ok(frame(2, "a", 0, ""))), None);
        assert_eq!(requests.on_frame(Ok(frame(1, "b", 0, ""))), None);
        assert_eq!(requests.jobs(), 1);
    }

    #[test]
    fn the_body_of_a_repeated_request_does_not_stop_the_first_one() {
        let mut requests = Requests::new(Form::Binary, 4);
        started(requests.on_frame(Ok(frame(1, "a", 2, "ab"))));
        assert_eq!(requests.on_frame(Ok(frame(1, "a", 4, "a"))), None);
        assert_eq!(piece(&mut requests, 1, "bc"), None);
        assert_eq!(piece(&mut requests, 1, "d"), None);
        assert_eq!(requests.jobs(), 1);
        assert_eq!(stopped(piece(&mut requests, 1, "e")), (1, FailureCode::BadRequest));
    }

    #[test]
    fn a_draining_link_finishes_its_jobs_and_takes_no_new_ones() {
        let mut requests = Requests::new(Form::Json, 4);
        let order = started(text(&mut requests, "a"));
        let shutdown = GracefulShutdown { drain_timeout_secs: Some(3), reason: None };
        let action = requests.on_message(Ok(ServerMessage::GracefulShutdown(shutdown)));
        let timeout = Some(Duration::from_secs(3));
        assert_eq!(action, Some(Action::Drain { reason: None, timeout }));
        assert_eq!(declined(text(&mut requests, "b")), FailureCode::Draining);
        assert_eq!((requests.jobs(), requests.is_draining()), (1, true));
        requests.ended(order.number);
        assert_eq!(requests.jobs(), 0);
    }

    #[test]
    fn control_messages_become_actions() {
        let mut requests = Requests::new(Form::Binary, 1);
        let ping = Ping { timestamp_unix_ms: Some(5) };
        let pong = requests.on_message(Ok(ServerMessage::Ping(ping)));
        assert_eq!(pong, Some(Action::Pong { timestamp: Some(5) }));
        let refresh = ServerMessage::ModelsRefresh(ModelsRefresh::default());
        assert_eq!(requests.on_message(Ok(refresh)), Some(Action::Refresh));
        let load = || ServerMessage::LoadModel(ModelMessage { number: 3, model: "m".into() });
        let change = Action::ChangeModel { number: 3, model: "m".into(), loads: true };
        assert_eq!(requests.on_message(Ok(load())), Some(change));
        assert_eq!(Requests::new(Form::Json, 1).on_message(Ok(load())), None);
    }

    #[test]
    fn a_bad_message_costs_its_job_at_most() {
        let mut requests = Requests::new(Form::Json, 4);
        let order = started(text(&mut requests, "a"));
        let field = || Problem::BadField("x".to_owned());
        let mut hear = |error| requests.on_message(Err(error));
        assert_eq!(hear(bad_text("novelty", Some("a"), Problem::UnknownType)), None);
        assert_eq!(hear(bad_text("ping", None, field())), None);
        assert_eq!(hear(bad_text("request", Some("a"), field())), None);
        assert_eq!(
            declined(hear(bad_text("request", Some("b"), field()))),
            FailureCode::BadRequest
        );
        let stop = stopped(hear(bad_text("cancel", Some("a"), field())));
        assert_eq!(stop, (order.number, FailureCode::Canceled));
    }

    #[test]
    fn a_bad_frame_costs_its_job_at_most() {
        let mut requests = Requests::new(Form::Binary, 4);
        started(requests.on_frame(Ok(frame(1, "a", 0, ""))));
        let mut hear =
            |job| requests.on_frame(Err(FrameError { job, problem: FrameProblem::Short }));
        assert_eq!(hear(None), None);
        assert_eq!(stopped(hear(Some(1))), (1, FailureCode::BadRequest));
        assert_eq!(declined(hear(Some(2))), FailureCode::BadRequest);
    }

    #[test]
    fn frames_of_the_other_form_are_ignored() {
        let mut json = Requests::new(Form::Json, 1);
        assert_eq!(json.on_frame(Ok(frame(1, "a", 0, ""))), None);
        let mut binary = Requests::new(Form::Binary, 1);
        assert_eq!(text(&mut binary, "a"), None);
        assert_eq!((json.jobs(), binary.jobs()), (0, 0));
    }
}
