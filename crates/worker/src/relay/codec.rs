//! The relay protocol on one link.

use std::{collections::HashMap, sync::Arc, time::Duration};

use protocol::relay::{
    INITIAL_CREDIT, JobFailure, ModelDone, ModelsUpdate, Pong, Register, RegisterAck,
    STOCK_THROTTLED, STOCK_VERSION, ServerFrame, ServerMessage, Version, WorkerFrame,
    WorkerMessage,
};
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use wire::{DialedLink, Frame, Link, Outbox, until};

use super::{
    model_changes::ModelChanges,
    requests::{Action, Form, Requests},
};
use crate::{
    context::LinkContext,
    credit::Credit,
    driver::{Cause, Codec, SilentBeats, silent},
    event::Event,
    lent::{LentBackend, Offer},
    order::Order,
    outcome::Outcome,
    reply::{BinaryReply, Reply},
    room::GiveUpReason,
    tasks::{JobTasks, TaskEnd},
};

/// How long a server may take to accept a registration.
const REGISTER_DEADLINE: Duration = Duration::from_secs(10);

/// How often the load is reported to a stock server, which makes it hand out queued work. And after how
/// many silent beats a stock server counts as gone.
const STOCK_BEAT: Duration = Duration::from_secs(10);
const STOCK_SILENT_BEATS: u32 = 9;

/// How often a Warren is pinged, and after how many beats without a sign of life it counts as gone.
/// So a worker whose network has changed dials again within half a minute.
const BEAT: Duration = Duration::from_secs(5);
const SILENT_BEATS: u32 = 4;

/// The time after which a job is acknowledged. Most answers begin sooner, and acknowledge the job
/// by that.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_secs(1);

/// How long a server may take to drain, if it does not say; and how much longer until it closes the
/// link.
const SERVER_DRAIN: Duration = Duration::from_secs(30);
const SERVER_CLOSE: Duration = Duration::from_secs(10);

/// The codec's events beside frames.
pub(crate) enum LinkEvent {
    JobEnded(TaskEnd),
    ModelDone(ModelDone),
    Offer,
    Acknowledge,
}

/// A deadline for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Registration,
    Drain,
}

/// The state that the link keeps for a running job.
struct RunningJob {
    /// Its path, in the JSON form.
    path: String,
    credit: Arc<Credit>,
}

/// A link of the relay protocol, with its jobs.
pub(crate) struct RelayCodec<'a> {
    context: &'a LinkContext,
    lent: &'a Arc<LentBackend>,
    outbox: Outbox,
    form: Form,
    /// The version of the binary form.
    version: Version,
    requests: Requests,
    tasks: JobTasks,
    changes: ModelChanges,
    running: HashMap<u32, RunningJob>,
    offers: watch::Receiver<Offer>,
    /// The offer as last seen by this link.
    offer: Offer,
    /// The offer that the server knows.
    announced: Offer,
    /// Whether the server waits for a fresh list.
    refresh: bool,
    registered: Option<Instant>,
    deadline: Option<(Instant, Due)>,
    /// Whether the server wants jobs acknowledged.
    acknowledges: bool,
    /// When jobs are acknowledged next.
    acknowledge_at: Option<Instant>,
    silence: SilentBeats,
}

impl<'a> RelayCodec<'a> {
    /// Registers at the server.
    pub(crate) fn new(context: &'a LinkContext, dialed: DialedLink) -> (Link, Self) {
        let DialedLink { link, outbox, subprotocol, .. } = dialed;
        let version = subprotocol.as_deref().and_then(Version::of);
        let form = version.map_or(Form::Json, |_| Form::Binary);
        let lent = &context.lent;
        let mut codec = Self {
            context,
            lent,
            outbox,
            form,
            version: version.unwrap_or(Version::NEWEST),
            requests: Requests::new(form, lent.max_concurrent()),
            tasks: JobTasks::default(),
            changes: ModelChanges::default(),
            running: HashMap::new(),
            offers: lent.offers(),
            offer: Offer::default(),
            announced: Offer::default(),
            refresh: false,
            registered: None,
            deadline: Some((Instant::now() + REGISTER_DEADLINE, Due::Registration)),
            acknowledges: false,
            acknowledge_at: None,
            silence: SilentBeats::new(),
        };
        codec.register();
        (link, codec)
    }

    fn register(&mut self) {
        self.look_at_offer();
        self.announced = self.offer.clone();
        self.send_message(WorkerMessage::Register(Register {
            worker_name: self.context.name.clone(),
            models: self.announced.models.to_vec(),
            max_concurrent: self.lent.max_concurrent(),
            protocol_version: Some(STOCK_VERSION.to_owned()),
            current_load: self.lent.load(),
            endpoints: self.announced.endpoints,
            participant: self.context.room.as_ref().map(|room| Box::new(room.participant())),
            link: (self.form == Form::Binary).then(|| self.context.id.clone()),
            acknowledges: self.form == Form::Binary,
            cloud: self.lent.backend().is_cloud(),
            loads_models: self.loads_models(),
        }));
    }

    /// Whether it loads and unloads models at the server's request: for the owner's servers, but
    /// not for a room.
    fn loads_models(&self) -> bool {
        let is_binary = self.form == Form::Binary;
        is_binary && self.context.room.is_none() && self.lent.backend().engines().is_some()
    }

    /// Begins to load or unload a model. Its end is reported to the server.
    fn change_model(&mut self, number: u32, model: String, loads: bool) {
        if let Some(refused) = self.changes.start(self.lent, (number, model, loads)) {
            self.send_message(WorkerMessage::ModelDone(refused));
        }
    }

    fn start(&mut self, order: Order) {
        let credit = Arc::new(Credit::new(INITIAL_CREDIT));
        let Order { number, ref request_id, ref path, streaming, .. } = order;
        let outbox = self.outbox.clone();
        let (reply, path) = match self.form {
            Form::Json => (Reply::json(outbox, request_id.clone(), path, streaming), path.clone()),
            Form::Binary => {
                let reply = BinaryReply::new(self.version, outbox, number, Arc::clone(&credit));
                (Reply::Binary(reply), String::new())
            }
        };
        // Before the task begins, since the next frame may already grant credit.
        self.running.insert(number, RunningJob { path, credit });
        self.tasks.start(order, self.lent.count(), reply);
    }

    fn decline(&self, job: u32, request_id: String, path: &str, why: JobFailure) {
        match self.form {
            Form::Json => Reply::json(self.outbox.clone(), request_id, path, false).fail(why),
            Form::Binary => self.send(WorkerFrame::Fail { job, failure: why }.encode(self.version)),
        }
    }

    /// Tells the server which jobs have arrived.
    fn acknowledge(&mut self) {
        self.acknowledge_at = None;
        for job in self.requests.acknowledge() {
            self.send(WorkerFrame::Accepted { job }.encode(self.version));
        }
    }

    fn pong(&self, timestamp_unix_ms: Option<u64>) {
        self.send_message(WorkerMessage::Pong(Pong {
            current_load: self.lent.load(),
            timestamp_unix_ms,
        }));
    }

    /// The server has accepted the registration.
    fn on_registered(&mut self, ack: RegisterAck) -> Option<Outcome> {
        if self.context.room.is_some() && ack.room.is_none() {
            // The server ignored the room, and would send this worker the requests of the whole
            // server.
            return Some(Outcome::Over(GiveUpReason::NoRooms));
        }
        self.registered = Some(Instant::now());
        self.acknowledges = ack.acknowledge;
        // A drain that was announced before the registration has set a deadline of its own, which
        // stays.
        if matches!(self.deadline, Some((_, Due::Registration))) {
            self.deadline = None;
        }
        // A stock server hands out queued jobs on an update, but not on a registration.
        if !self.requests.is_draining() {
            self.report_models();
        }
        self.context.events.send(&Event::Connected {
            server: self.context.server.to_string(),
            name: self.context.name.clone(),
            worker_id: ack.worker_id.clone(),
            binary: self.form == Form::Binary,
            warnings: ack.warnings.clone(),
        });
        self.joined(ack);
        None
    }

    fn joined(&self, ack: RegisterAck) {
        let Some((room, code)) = self.context.room.as_ref().zip(ack.room) else { return };
        room.joined(ack.session_token.map(Into::into));
        let (server, name) = (self.context.server.to_string(), self.context.name.clone());
        let event = room.joined_event(server, name, code, ack.participant_id, false);
        self.context.events.send(&event);
    }

    fn on_drain(&mut self, reason: Option<String>, timeout: Option<Duration>) {
        let wait = timeout.unwrap_or(SERVER_DRAIN).saturating_add(SERVER_CLOSE);
        // If the time is too far away for the clock, there is no deadline.
        self.deadline = Instant::now().checked_add(wait).map(|at| (at, Due::Drain));
        self.context.events.send(&Event::Draining {
            server: self.context.server.to_string(),
            name: self.context.name.clone(),
            reason: reason.unwrap_or_default(),
        });
    }

    fn on_ended(&mut self, TaskEnd { number, panicked }: TaskEnd) {
        let request_id = self.requests.ended(number);
        let Some(RunningJob { path, .. }) = self.running.remove(&number) else { return };
        // A task that panicked has told the server nothing, so the link does.
        if let Some(request_id) = request_id.filter(|_| panicked) {
            let code = "worker_broke".to_owned().into();
            let message = "the worker failed at this request".to_owned();
            self.decline(number, request_id, &path, JobFailure { code, message });
        }
    }

    fn on_offer(&mut self) {
        let Offer { polls, eased, .. } = self.offer;
        self.look_at_offer();
        // A draining worker has said that it has no models, and must not take that back.
        if self.registered.is_none() || self.requests.is_draining() {
            return;
        }
        // A server that asked for a fresh list gets one, even if nothing has changed.
        let asked_for = self.refresh && self.offer.polls != polls;
        if !self.offer.is_as_announced(&self.announced) || asked_for {
            self.report_models();
        } else if self.offer.eased != eased {
            self.pong(None);
        }
    }

    fn look_at_offer(&mut self) {
        self.offer = self.offers.borrow_and_update().clone();
        // A stock server does not know facts, and each update makes it hand out queued jobs: so
        // changed facts cause none.
        if self.form != Form::Binary {
            self.offer.facts = Arc::default();
        }
    }

    fn report_models(&mut self) {
        self.refresh = false;
        self.look_at_offer();
        self.announced = self.offer.clone();
        let Offer { ref models, endpoints, reached, .. } = self.announced;
        let (models, current_load) = (models.to_vec(), self.lent.load());
        let facts = (*self.announced.facts).clone();
        let none_left = models.is_empty() && reached && self.form == Form::Binary;
        self.send_message(WorkerMessage::ModelsUpdate(ModelsUpdate {
            models,
            current_load,
            endpoints,
            none_left,
            facts,
        }));
    }

    #[expect(clippy::needless_pass_by_value, reason = "the message goes nowhere else")]
    fn send_message(&self, message: WorkerMessage) {
        self.send(message.encode());
    }

    fn send(&self, frame: impl Into<Frame>) {
        // If the link is closed, the next read reports it.
        let _ = self.outbox.push(frame);
    }
}

impl Codec for RelayCodec<'_> {
    type Event = LinkEvent;

    async fn event(&mut self) -> LinkEvent {
        tokio::select! {
            biased;
            end = self.tasks.ended() => LinkEvent::JobEnded(end),
            done = self.changes.ended() => LinkEvent::ModelDone(done),
            Ok(()) = self.offers.changed() => LinkEvent::Offer,
            () = until(self.acknowledge_at) => LinkEvent::Acknowledge,
        }
    }

    fn on_event(&mut self, event: LinkEvent) -> Option<Outcome> {
        match event {
            LinkEvent::Offer => self.on_offer(),
            LinkEvent::Acknowledge => self.acknowledge(),
            LinkEvent::ModelDone(done) => self.send_message(WorkerMessage::ModelDone(done)),
            LinkEvent::JobEnded(end) => {
                self.on_ended(end);
                // Jobs that ended at the same time are handled in the same wake-up.
                while let Some(end) = self.tasks.try_ended() {
                    self.on_ended(end);
                }
            }
        }
        None
    }

    fn on_frame(&mut self, frame: Frame) -> Option<Outcome> {
        let action = match frame {
            Frame::Text(text) => self.requests.on_message(ServerMessage::decode(&text)),
            Frame::Binary(bytes) => self.requests.on_frame(ServerFrame::decode(bytes)),
        };
        // One timer for all: jobs that come while it runs are acknowledged with the first.
        if self.acknowledges && self.acknowledge_at.is_none() && self.requests.has_news() {
            self.acknowledge_at = Some(Instant::now() + ACKNOWLEDGE_AFTER);
        }
        match action? {
            Action::Start(order) => self.start(order),
            Action::Stop { number, why } => self.tasks.stop(number, why),
            Action::Decline { number, request_id, path, why } => {
                self.decline(number, request_id, &path, why);
            }
            Action::Credit { number, bytes } => {
                if let Some(job) = self.running.get(&number) {
                    job.credit.grant(bytes);
                }
            }
            Action::Pong { timestamp } => self.pong(timestamp),
            Action::Registered(ack) => return self.on_registered(ack),
            Action::Refresh => {
                // Answered once the backend has been asked, since the present list may be out of
                // date.
                self.refresh = true;
                self.lent.ask_to_refresh();
            }
            Action::ChangeModel { number, model, loads } => {
                self.change_model(number, model, loads);
            }
            Action::Drain { reason, timeout } => self.on_drain(reason, timeout),
        }
        None
    }

    fn beats(&self) -> Interval {
        let every = if self.pings() { BEAT } else { STOCK_BEAT };
        let mut beats = interval_at(Instant::now() + every, every);
        // A machine that was asleep must not beat several times in a row, since each beat counts as
        // a silence.
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats
    }

    fn pings(&self) -> bool {
        self.form == Form::Binary
    }

    fn on_beat(&mut self, heard: Instant) -> Option<Outcome> {
        let most = if self.pings() { SILENT_BEATS } else { STOCK_SILENT_BEATS };
        if self.silence.beat(heard) >= most {
            return Some(self.lost(silent(heard)));
        }
        if self.form == Form::Json && self.registered.is_some() {
            self.pong(None);
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.map(|(at, _)| at)
    }

    fn jobs(&self) -> usize {
        self.requests.jobs()
    }

    /// Takes no new jobs, and asks the server to send none. An empty list of models is the protocol's
    /// only way to say so.
    fn drain(&mut self) {
        self.requests.drain();
        if self.registered.is_some() {
            let current_load = self.lent.load();
            let nothing = ModelsUpdate { current_load, ..ModelsUpdate::default() };
            self.send_message(WorkerMessage::ModelsUpdate(nothing));
        }
    }

    fn closed(&self, reason: Option<(u16, String)>) -> Outcome {
        match reason {
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
        if self.requests.is_draining() {
            return Outcome::Drained(reason);
        }
        Outcome::Lost { reason, stood: self.registered.map(|at| at.elapsed()) }
    }

    fn too_late(&self) -> Outcome {
        match self.deadline {
            Some((_, Due::Registration)) => {
                self.lost("the server did not answer the registration".to_owned())
            }
            _ => Outcome::Drained("the server drained and did not close".to_owned()),
        }
    }

    async fn end(mut self, link: Link, cause: Cause) {
        // Before the close, so that the backend is released by the time the server sees the end of
        // the link.
        self.tasks.shut_down().await;
        if cause == Cause::Shutdown {
            link.close(1000, "worker shutting down").await;
        } else if !self.outbox.is_closed() {
            link.close(1000, "worker reconnects").await;
        }
    }
}
