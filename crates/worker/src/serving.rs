//! One link while it stands.

use std::{collections::HashMap, sync::Arc, time::Duration};

use protocol::relay::{
    INITIAL_CREDIT, JobFailure, ModelsUpdate, Pong, Register, RegisterAck, STOCK_THROTTLED,
    STOCK_VERSION, SUBPROTOCOL, ServerFrame, ServerMessage, WorkerFrame, WorkerMessage,
};
use tokio::{
    sync::{oneshot, watch},
    task::{Id, JoinError, JoinSet},
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use wire::{DialedLink, Frame, Link, LinkError, Outbox};

use crate::{
    credit::Credit,
    event::Event,
    job::Job,
    lent::{Lent, Offer},
    link::LinkLoop,
    order::Order,
    reconnect::Outcome,
    reply::{BinaryReply, Reply},
    room::GiveUpReason,
    session::{Action, Form, Session},
};

/// How long a server may take to accept a registration.
const REGISTER_DEADLINE: Duration = Duration::from_secs(10);

/// How often the load is reported unasked, which makes a stock server hand out queued work.
const BEAT: Duration = Duration::from_secs(10);

/// A server that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(90);

/// Frames taken in one go before anything else is looked at.
const AT_ONCE: usize = 32;

/// How long a server may take to drain, if it does not say; and what it gets beyond that to close.
const SERVER_DRAIN: Duration = Duration::from_secs(30);
const SERVER_CLOSE: Duration = Duration::from_secs(10);

/// How a link ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It has to be tried again.
    Again(Outcome),
    /// The worker ends; so many jobs were not finished.
    Left(usize),
}

/// What wakes the link.
enum Wake {
    Frame(Result<Option<Frame>, LinkError>),
    JobEnded(Result<(Id, ()), JoinError>),
    Offer,
    Beat,
    Deadline,
    Shutdown,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Registration,
    ServerDrain,
    Leaving,
}

/// What the link keeps of a running job.
struct Running {
    number: u32,
    request_id: String,
    path: String,
}

/// How the link reaches a running job.
struct Handle {
    stop: Option<oneshot::Sender<JobFailure>>,
    credit: Arc<Credit>,
}

/// A link that stands, with its jobs.
pub(crate) struct Serving<'a> {
    context: &'a LinkLoop,
    lent: &'a Arc<Lent>,
    link: Link,
    outbox: Outbox,
    form: Form,
    session: Session,
    jobs: JoinSet<()>,
    running: HashMap<Id, Running>,
    handles: HashMap<u32, Handle>,
    offers: watch::Receiver<Offer>,
    /// The offer as it was last looked at.
    seen: Offer,
    /// The offer as the server knows it.
    told: Offer,
    /// Whether the server waits for a fresh list.
    refresh: bool,
    registered: Option<Instant>,
    deadline: Option<(Instant, Due)>,
    /// Why this link has no sense.
    over: Option<GiveUpReason>,
}

impl<'a> Serving<'a> {
    pub(crate) fn new(context: &'a LinkLoop, dialed: DialedLink) -> Self {
        let DialedLink { link, outbox, subprotocol, .. } = dialed;
        let binary = subprotocol.as_deref() == Some(SUBPROTOCOL);
        let form = if binary { Form::Binary } else { Form::Json };
        let lent = &context.lent;
        Self {
            context,
            lent,
            link,
            outbox,
            form,
            session: Session::new(form, lent.max_concurrent()),
            jobs: JoinSet::new(),
            running: HashMap::new(),
            handles: HashMap::new(),
            offers: lent.offers(),
            seen: Offer::default(),
            told: Offer::default(),
            refresh: false,
            registered: None,
            deadline: Some((Instant::now() + REGISTER_DEADLINE, Due::Registration)),
            over: None,
        }
    }

    /// Registers, and serves until the link ends.
    pub(crate) async fn run(mut self) -> Ending {
        self.register();
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.is_leaving() && self.session.jobs() == 0 {
                return self.leave().await;
            }
            let ending = match self.wait(&mut beat).await {
                Wake::Frame(Ok(Some(frame))) => {
                    self.on_frame(frame);
                    self.on_ready_frames();
                    self.over.take().map(Outcome::Over)
                }
                Wake::Frame(Ok(None)) => Some(self.closed()),
                Wake::Frame(Err(error)) => Some(self.lost(error.to_string())),
                Wake::JobEnded(ended) => {
                    self.on_ended(ended);
                    self.on_ended_jobs();
                    None
                }
                Wake::Offer => self.on_offer(),
                Wake::Beat => self.on_beat(),
                Wake::Shutdown => self.begin_to_leave(),
                Wake::Deadline if self.is_leaving() => return self.leave().await,
                Wake::Deadline => Some(self.too_late()),
            };
            if let Some(outcome) = ending {
                return self.end(outcome).await;
            }
        }
    }

    async fn wait(&mut self, beat: &mut Interval) -> Wake {
        let leaving = self.is_leaving();
        let deadline = self.deadline.map(|(at, _)| at);
        tokio::select! {
            biased;
            () = self.context.shutdown.cancelled(), if !leaving => Wake::Shutdown,
            Some(ended) = self.jobs.join_next_with_id() => Wake::JobEnded(ended),
            Ok(()) = self.offers.changed() => Wake::Offer,
            _ = beat.tick() => Wake::Beat,
            () = until(deadline), if deadline.is_some() => Wake::Deadline,
            frame = self.link.next() => Wake::Frame(frame),
        }
    }

    fn register(&mut self) {
        self.look_at_offer();
        self.told = self.seen.clone();
        self.tell(WorkerMessage::Register(Register {
            worker_name: self.context.name.clone(),
            models: self.told.models.to_vec(),
            max_concurrent: self.lent.max_concurrent(),
            protocol_version: Some(STOCK_VERSION.to_owned()),
            current_load: self.lent.load(),
            endpoints: self.told.endpoints,
            participant: self.context.room.as_ref().map(|room| Box::new(room.participant())),
        }));
    }

    /// What has come with a frame is taken with it: waiting anew costs more than most frames.
    fn on_ready_frames(&mut self) {
        for _ in 0..AT_ONCE {
            match self.link.ready() {
                Some(frame) => self.on_frame(frame),
                None => return,
            }
        }
    }

    fn on_ended_jobs(&mut self) {
        while let Some(ended) = self.jobs.try_join_next_with_id() {
            self.on_ended(ended);
        }
    }

    fn on_frame(&mut self, frame: Frame) {
        let action = match frame {
            Frame::Text(text) => self.session.on_message(ServerMessage::decode(&text)),
            Frame::Binary(bytes) => self.session.on_frame(ServerFrame::decode(bytes)),
        };
        let Some(action) = action else { return };
        match action {
            Action::Start(order) => self.start(order),
            Action::Stop { number, why } => self.stop(number, why),
            Action::Decline { number, request_id, path, why } => {
                self.decline(number, request_id, &path, why);
            }
            Action::Credit { number, bytes } => self.credit(number, bytes),
            Action::Pong { timestamp } => self.pong(timestamp),
            Action::Registered(ack) => self.on_registered(ack),
            Action::Refresh => {
                self.refresh = true;
                self.lent.ask_to_refresh();
            }
            Action::Drain { reason, timeout } => self.on_drain(reason, timeout),
        }
    }

    fn start(&mut self, order: Order) {
        let (stop, stopped) = oneshot::channel();
        let credit = Arc::new(Credit::new(INITIAL_CREDIT));
        let (number, request_id) = (order.number, order.request_id.clone());
        let running = Running { number, request_id, path: order.path.clone() };
        let reply = match self.form {
            Form::Json => {
                let request_id = order.request_id.clone();
                Reply::json(self.outbox.clone(), request_id, &order.path, order.streaming)
            }
            Form::Binary => {
                Reply::Binary(BinaryReply::new(self.outbox.clone(), number, Arc::clone(&credit)))
            }
        };
        let job = Job { order, lent: self.lent.count(), reply, stop: stopped };
        let task = self.jobs.spawn(job.run());
        self.running.insert(task.id(), running);
        self.handles.insert(number, Handle { stop: Some(stop), credit });
    }

    fn stop(&mut self, number: u32, why: JobFailure) {
        let stop = self.handles.get_mut(&number).and_then(|handle| handle.stop.take());
        if let Some(stop) = stop {
            // A job that has just ended needs no stopping.
            let _ = stop.send(why);
        }
    }

    fn decline(&self, job: u32, request_id: String, path: &str, why: JobFailure) {
        match self.form {
            Form::Json => Reply::json(self.outbox.clone(), request_id, path, false).fail(why),
            Form::Binary => self.send(WorkerFrame::Fail { job, failure: why }.encode()),
        }
    }

    fn credit(&self, number: u32, bytes: u32) {
        if let Some(handle) = self.handles.get(&number) {
            handle.credit.grant(bytes);
        }
    }

    fn pong(&self, timestamp_unix_ms: Option<u64>) {
        self.tell(WorkerMessage::Pong(Pong { current_load: self.lent.load(), timestamp_unix_ms }));
    }

    fn on_registered(&mut self, ack: RegisterAck) {
        if self.context.room.is_some() && ack.room.is_none() {
            // It would give this worker everybody's requests.
            self.over = Some(GiveUpReason::NoRooms);
            return;
        }
        self.registered = Some(Instant::now());
        if matches!(self.deadline, Some((_, Due::Registration))) {
            self.deadline = None;
        }
        // A stock server hands out what is queued on an update, not on a registration.
        if !self.session.is_draining() {
            self.report_models();
        }
        self.context.teller.tell(&Event::Connected {
            server: self.context.server.to_string(),
            name: self.context.name.clone(),
            worker_id: ack.worker_id.clone(),
            binary: self.form == Form::Binary,
            warnings: ack.warnings.clone(),
        });
        self.joined(ack);
    }

    fn joined(&self, ack: RegisterAck) {
        let Some((room, code)) = self.context.room.as_ref().zip(ack.room) else { return };
        room.joined(ack.session_token.map(Into::into));
        self.context.teller.tell(&room.event(self.context, code, ack.participant_id, false));
    }

    fn on_drain(&mut self, reason: Option<String>, timeout: Option<Duration>) {
        if !self.is_leaving() {
            let wait = timeout.unwrap_or(SERVER_DRAIN).saturating_add(SERVER_CLOSE);
            // A wait that no clock can hold is as good as none.
            self.deadline = Instant::now().checked_add(wait).map(|at| (at, Due::ServerDrain));
        }
        self.context.teller.tell(&Event::Draining {
            server: self.context.server.to_string(),
            name: self.context.name.clone(),
            reason: reason.unwrap_or_default(),
        });
    }

    fn on_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let Some(Running { number, request_id, path }) = self.running.remove(&id) else { return };
        self.handles.remove(&number);
        self.session.ended(number);
        if panicked {
            let code = "worker_broke".to_owned().into();
            let message = "the worker failed at this request".to_owned();
            self.decline(number, request_id, &path, JobFailure { code, message });
        }
    }

    fn on_offer(&mut self) -> Option<Outcome> {
        let Offer { polls, eased, .. } = self.seen;
        self.look_at_offer();
        if self.registered.is_none() || self.session.is_draining() {
            return None;
        }
        let asked_for = self.refresh && self.seen.polls != polls;
        if !self.seen.is_as_told(&self.told) || asked_for {
            self.report_models();
        } else if self.seen.eased != eased {
            self.pong(None);
        }
        None
    }

    fn look_at_offer(&mut self) {
        self.seen = self.offers.borrow_and_update().clone();
    }

    fn report_models(&mut self) {
        self.refresh = false;
        self.look_at_offer();
        self.told = self.seen.clone();
        let Offer { ref models, endpoints, .. } = self.told;
        let (models, current_load) = (models.to_vec(), self.lent.load());
        self.tell(WorkerMessage::ModelsUpdate(ModelsUpdate { models, current_load, endpoints }));
    }

    fn on_beat(&mut self) -> Option<Outcome> {
        let silent = self.link.heard().elapsed();
        if silent >= SILENCE {
            return Some(self.lost(format!("the server was silent for {} s", silent.as_secs())));
        }
        if self.form == Form::Json && self.registered.is_some() {
            self.pong(None);
        }
        None
    }

    fn too_late(&self) -> Outcome {
        match self.deadline {
            Some((_, Due::Registration)) => {
                self.lost("the server did not answer the registration".to_owned())
            }
            _ => Outcome::Drained("the server drained and did not close".to_owned()),
        }
    }

    fn is_leaving(&self) -> bool {
        matches!(self.deadline, Some((_, Due::Leaving)))
    }

    /// Takes nothing new, and has the server send nothing new: the protocol has no other word
    /// for it than an empty list of models.
    fn begin_to_leave(&mut self) -> Option<Outcome> {
        self.session.drain();
        self.deadline = Some((Instant::now() + self.context.drain_timeout, Due::Leaving));
        if self.registered.is_some() {
            let current_load = self.lent.load();
            let nothing = ModelsUpdate { current_load, ..ModelsUpdate::default() };
            self.tell(WorkerMessage::ModelsUpdate(nothing));
        }
        None
    }

    async fn leave(mut self) -> Ending {
        let cut_off = self.session.jobs();
        self.jobs.shutdown().await;
        self.link.close(1000, "worker shutting down").await;
        Ending::Left(cut_off)
    }

    async fn end(mut self, outcome: Outcome) -> Ending {
        let cut_off = self.session.jobs();
        let leaving = self.is_leaving();
        self.jobs.shutdown().await;
        if !self.outbox.is_closed() {
            self.link.close(1000, "worker reconnects").await;
        }
        if leaving { Ending::Left(cut_off) } else { Ending::Again(outcome) }
    }

    fn closed(&self) -> Outcome {
        match self.link.close_reason() {
            Some((code, reason)) if self.context.room.is_some() => {
                match GiveUpReason::by_close(code, &reason) {
                    Some(why) => Outcome::Over(why),
                    None => self.lost(format!("the server closed: {code} {reason}")),
                }
            }
            Some((1008, reason)) if reason == STOCK_THROTTLED => Outcome::Throttled(reason),
            Some((1008, reason)) => Outcome::Refused(reason),
            Some((code, reason)) => self.lost(format!("the server closed: {code} {reason}")),
            None => self.lost("the server went away".to_owned()),
        }
    }

    fn lost(&self, reason: String) -> Outcome {
        if self.session.is_draining() {
            return Outcome::Drained(reason);
        }
        Outcome::Lost { reason, stood: self.registered.map(|at| at.elapsed()) }
    }

    #[expect(clippy::needless_pass_by_value, reason = "the message goes nowhere else")]
    fn tell(&self, message: WorkerMessage) {
        self.send(message.encode());
    }

    fn send(&self, frame: impl Into<Frame>) {
        // A link that is closed says so when it is read next.
        let _ = self.outbox.push(frame);
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
