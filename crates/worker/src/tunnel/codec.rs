//! The protocol of a stock participant on one tunnel.

use std::{
    pin::Pin,
    time::{Duration, SystemTime},
};

use protocol::{
    relay::{FailureCode, JobFailure},
    room::tunnel::{FromParticipant, Tick},
};
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior, interval, timeout},
};
use wire::{Frame, Link, Outbox};

use super::{
    open::OpenTunnel,
    requests::{self, Action, Requests},
};
use crate::{
    context::LinkContext,
    driver::{Cause, Codec, SilentBeats, silent},
    lent::Offer,
    order::Order,
    outcome::Outcome,
    reply::{Reply, TunnelReply, failed},
    room::{member::RoomMember, plane::HeartbeatFailure},
    tasks::{JobTasks, TaskEnd},
};

/// After this many heartbeats without a frame of the server, the tunnel counts as dead: the server
/// answers each ping with a pong.
const SILENT_BEATS: u32 = 3;

/// The code and reason that close the tunnel when the worker ends.
const LEAVING: (u16, &str) = (1000, "the participant leaves");

/// The code and reason that close the tunnel when it is opened again.
const AGAIN: (u16, &str) = (1000, "the participant joins anew");

/// The events that the tunnel waits for beside frames.
pub(crate) enum TunnelEvent {
    JobEnded(TaskEnd),
    Heartbeat(Result<(), HeartbeatFailure>),
    Offer,
}

/// A heartbeat over HTTP that waits for its answer.
type Heartbeat<'a> = Pin<Box<dyn Future<Output = Result<(), HeartbeatFailure>> + Send + 'a>>;

/// A tunnel, with its jobs.
pub(crate) struct TunnelCodec<'a> {
    context: &'a LinkContext,
    room: &'a RoomMember,
    outbox: Outbox,
    /// The model that the server knows.
    model: String,
    offers: watch::Receiver<Offer>,
    requests: Requests,
    /// Whether the server is a Warren, which itself tells the client if an answer breaks off.
    is_warren: bool,
    tasks: JobTasks,
    /// The heartbeat that waits for its answer; one at a time.
    heartbeat: Option<Heartbeat<'a>>,
    since: Instant,
    silence: SilentBeats,
}

impl<'a> TunnelCodec<'a> {
    pub(crate) fn new(
        context: &'a LinkContext,
        room: &'a RoomMember,
        open: OpenTunnel,
    ) -> (Link, Self) {
        let OpenTunnel { dialed, model, is_warren } = open;
        let codec = Self {
            context,
            room,
            outbox: dialed.outbox,
            model,
            offers: context.lent.offers(),
            requests: Requests::new(context.lent.max_concurrent()),
            is_warren,
            tasks: JobTasks::default(),
            heartbeat: None,
            since: Instant::now(),
            silence: SilentBeats::new(),
        };
        (dialed.link, codec)
    }

    fn start(&mut self, order: Order) {
        // The client of a stock hub learns of a failure in the middle of an answer only by an event
        // in the stream.
        let tells = (!self.is_warren).then(|| order.path.clone());
        let reply = TunnelReply::new(self.outbox.clone(), order.request_id.clone(), tells);
        self.tasks.start(order, self.context.lent.count(), Reply::Tunnel(reply));
    }

    fn on_ended(&mut self, TaskEnd { number, panicked }: TaskEnd) {
        let request_id = self.requests.ended(number);
        if let Some(request_id) = request_id.filter(|_| panicked) {
            self.send(&failed(request_id, "the participant failed at this request".to_owned()));
        }
    }

    /// Whether the model that the server knows is no longer offered, but others are.
    fn is_stale(&self) -> bool {
        let offer = self.offers.borrow();
        !offer.models.is_empty() && !offer.models.contains(&self.model)
    }

    fn send(&self, frame: &FromParticipant) {
        // If the link is closed, the next read reports it.
        let _ = self.outbox.push(frame.encode());
    }
}

impl Codec for TunnelCodec<'_> {
    type Event = TunnelEvent;

    async fn event(&mut self) -> TunnelEvent {
        tokio::select! {
            biased;
            end = self.tasks.ended() => TunnelEvent::JobEnded(end),
            answer = answered(&mut self.heartbeat) => TunnelEvent::Heartbeat(answer),
            Ok(()) = self.offers.changed() => TunnelEvent::Offer,
        }
    }

    fn on_event(&mut self, event: TunnelEvent) -> Option<Outcome> {
        match event {
            TunnelEvent::JobEnded(end) => self.on_ended(end),
            TunnelEvent::Heartbeat(answer) => {
                self.heartbeat = None;
                return self.requests.on_heartbeat(answer).map(|reason| self.lost(reason));
            }
            // `on_idle` looks at the offer.
            TunnelEvent::Offer => self.offers.mark_unchanged(),
        }
        None
    }

    fn on_frame(&mut self, frame: Frame) -> Option<Outcome> {
        let Frame::Text(text) = frame else {
            tracing::warn!(len = frame.len(), "a binary frame of the server was ignored");
            return None;
        };
        match self.requests.on_text(text.as_str())? {
            Action::Start(order) => self.start(order),
            Action::Decline { request_id, why } => self.send(&failed(request_id, why)),
            Action::Stop(number) => {
                let message = "nobody waits for the answer any more".to_owned();
                self.tasks.stop(number, JobFailure { code: FailureCode::Canceled, message });
            }
        }
        None
    }

    fn beats(&self) -> Interval {
        let mut beats = interval(self.context.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beats
    }

    fn on_beat(&mut self, heard: Instant) -> Option<Outcome> {
        // One at a time, so that heartbeats do not pile up for a server that does not answer.
        if self.heartbeat.is_none() {
            let within = self.context.heartbeat;
            self.heartbeat = Some(Box::pin(heartbeat(self.room, within)));
        }
        self.send(&FromParticipant::Ping(Tick { timestamp: base::unix_ms(SystemTime::now()) }));
        let too_long = self.silence.beat(heard) >= SILENT_BEATS;
        too_long.then(|| self.lost(silent(heard)))
    }

    /// A tunnel lends one model. If the backend no longer offers it, the participant joins again
    /// with another one.
    fn on_idle(&mut self) -> Option<Outcome> {
        self.is_stale().then(|| self.lost("it offers another model now".to_owned()))
    }

    fn jobs(&self) -> usize {
        self.requests.jobs()
    }

    fn drain(&mut self) {
        self.requests.drain();
    }

    fn closed(&self, reason: Option<(u16, String)>) -> Outcome {
        match reason {
            Some((code, reason)) => requests::closed(code, &reason)
                .unwrap_or_else(|| self.lost(format!("the server closed: {code} {reason}"))),
            None => self.lost("the server went away".to_owned()),
        }
    }

    fn lost(&self, reason: String) -> Outcome {
        Outcome::Lost { reason, stood: Some(self.since.elapsed()) }
    }

    async fn end(mut self, link: Link, cause: Cause) {
        self.tasks.shut_down().await;
        let (code, reason) = if cause == Cause::Shutdown { LEAVING } else { AGAIN };
        if !self.outbox.is_closed() {
            link.close(code, reason).await;
        }
    }
}

async fn heartbeat(room: &RoomMember, within: Duration) -> Result<(), HeartbeatFailure> {
    let missed = |_| Err(HeartbeatFailure::Missed(format!("no answer within {within:?}")));
    timeout(within, room.heartbeat()).await.unwrap_or_else(missed)
}

async fn answered(heartbeat: &mut Option<Heartbeat<'_>>) -> Result<(), HeartbeatFailure> {
    match heartbeat {
        Some(heartbeat) => heartbeat.await,
        None => std::future::pending().await,
    }
}
