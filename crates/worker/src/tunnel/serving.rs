//! One tunnel while it stands.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use protocol::{
    relay::{FailureCode, JobFailure},
    room::tunnel::{FromParticipant, Tick},
};
use tokio::{
    sync::{oneshot, watch},
    task::{Id, JoinError, JoinSet},
    time::{Instant, Interval, MissedTickBehavior, interval, sleep_until, timeout},
};
use wire::{Frame, Link, LinkError, Outbox};

use super::{
    open::Open,
    session::{self, Action, Session},
};
use crate::{
    job::Job,
    lent::Offer,
    link::LinkLoop,
    order::Order,
    reconnect::Outcome,
    reply::{Reply, TunnelReply, failed},
    room::{HeartbeatFailed, InRoom},
    serving::Ending,
};

/// So many heartbeats without a frame of the server, and the tunnel is dead: each ping has a pong.
const SILENT_BEATS: u32 = 4;

/// Closed because the participant leaves.
const LEAVING: (u16, &str) = (1000, "the participant leaves");

/// Closed because the participant joins anew.
const AGAIN: (u16, &str) = (1000, "the participant joins anew");

/// What wakes the tunnel.
enum Wake {
    Frame(Result<Option<Frame>, LinkError>),
    JobEnded(Result<(Id, ()), JoinError>),
    Beat,
    Heartbeat(Result<(), HeartbeatFailed>),
    Offer,
    Late,
    Shutdown,
}

/// A tunnel that stands, with its jobs.
pub(super) struct Serving<'a> {
    context: &'a LinkLoop,
    room: &'a InRoom,
    link: Link,
    outbox: Outbox,
    /// The model that the server knows of.
    model: String,
    offers: watch::Receiver<Offer>,
    session: Session,
    /// Whether the server is a Warren, which itself tells the client that an answer broke off.
    is_warren: bool,
    jobs: JoinSet<()>,
    numbers: HashMap<Id, u32>,
    stops: HashMap<u32, oneshot::Sender<JobFailure>>,
    since: Instant,
    /// When the jobs that still run are cut off.
    leave_by: Option<Instant>,
}

impl<'a> Serving<'a> {
    pub(super) fn new(context: &'a LinkLoop, room: &'a InRoom, open: Open) -> Self {
        let Open { dialed, model, is_warren } = open;
        Self {
            context,
            room,
            link: dialed.link,
            outbox: dialed.outbox,
            model,
            offers: context.lent.offers(),
            session: Session::new(context.lent.max_concurrent()),
            is_warren,
            jobs: JoinSet::new(),
            numbers: HashMap::new(),
            stops: HashMap::new(),
            since: Instant::now(),
            leave_by: None,
        }
    }

    /// Serves until the tunnel ends.
    pub(super) async fn run(mut self) -> Ending {
        let mut beat = interval(self.context.heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // One at a time.
        let room = self.room;
        let mut heartbeat = std::pin::pin!(None);
        loop {
            if self.session.jobs() == 0 && self.leave_by.is_some() {
                return self.leave().await;
            }
            if self.session.jobs() == 0 && self.is_stale() {
                return self.end("it offers another model now".to_owned()).await;
            }
            let over = match self.wait(&mut beat, heartbeat.as_mut()).await {
                Wake::Frame(Ok(Some(frame))) => {
                    self.on_frame(&frame);
                    None
                }
                Wake::Frame(Ok(None)) => return self.closed(),
                Wake::Frame(Err(error)) => Some(error.to_string()),
                Wake::JobEnded(ended) => {
                    self.on_ended(ended);
                    None
                }
                Wake::Beat => {
                    if heartbeat.is_none() {
                        heartbeat.set(Some(heartbeat_of(room, self.context.heartbeat)));
                    }
                    self.on_beat()
                }
                Wake::Heartbeat(answer) => {
                    heartbeat.set(None);
                    self.session.on_heartbeat(answer)
                }
                Wake::Offer => {
                    self.offers.mark_unchanged();
                    None
                }
                Wake::Shutdown => {
                    self.begin_to_leave();
                    None
                }
                Wake::Late => return self.leave().await,
            };
            if let Some(reason) = over {
                return self.end(reason).await;
            }
        }
    }

    async fn wait<F>(
        &mut self,
        beat: &mut Interval,
        heartbeat: std::pin::Pin<&mut Option<F>>,
    ) -> Wake
    where
        F: Future<Output = Result<(), HeartbeatFailed>>,
    {
        let leave_by = self.leave_by;
        tokio::select! {
            biased;
            () = self.context.shutdown.cancelled(), if leave_by.is_none() => Wake::Shutdown,
            Some(ended) = self.jobs.join_next_with_id() => Wake::JobEnded(ended),
            _ = beat.tick() => Wake::Beat,
            answer = or_never(heartbeat) => Wake::Heartbeat(answer),
            () = sleep_until(leave_by.unwrap_or(self.since)), if leave_by.is_some() => Wake::Late,
            Ok(()) = self.offers.changed() => Wake::Offer,
            frame = self.link.next() => Wake::Frame(frame),
        }
    }

    fn on_frame(&mut self, frame: &Frame) {
        let Frame::Text(text) = frame else {
            return tracing::warn!(len = frame.len(), "a binary frame of the server was ignored");
        };
        match self.session.on_text(text.as_str()) {
            Some(Action::Start(order)) => self.start(order),
            Some(Action::Decline { request_id, why }) => self.send(&failed(request_id, why)),
            Some(Action::Stop(number)) => self.stop(number),
            None => {}
        }
    }

    fn start(&mut self, order: Order) {
        let (number, request_id) = (order.number, order.request_id.clone());
        // A stock hub's client learns of a failure in the middle only through an event.
        let tells = (!self.is_warren).then(|| order.path.clone());
        let reply = Reply::Tunnel(TunnelReply::new(self.outbox.clone(), request_id, tells));
        let (stop, stopped) = oneshot::channel();
        let job = Job { order, lent: self.context.lent.count(), reply, stop: stopped };
        let task = self.jobs.spawn(job.run());
        self.numbers.insert(task.id(), number);
        self.stops.insert(number, stop);
    }

    fn stop(&mut self, number: u32) {
        if let Some(stop) = self.stops.remove(&number) {
            let message = "nobody waits for the answer any more".to_owned();
            // A job that has just ended needs no stopping.
            let _ = stop.send(JobFailure { code: FailureCode::Canceled, message });
        }
    }

    fn on_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, false),
            Err(error) => (error.id(), error.is_panic()),
        };
        let number = self.numbers.remove(&id);
        number.and_then(|number| self.stops.remove(&number));
        let request_id = number.and_then(|number| self.session.ended(number));
        if let Some(request_id) = request_id.filter(|_| panicked) {
            self.send(&failed(request_id, "the participant failed at this request".to_owned()));
        }
    }

    fn on_beat(&self) -> Option<String> {
        self.send(&FromParticipant::Ping(Tick { timestamp: now_ms() }));
        let silent = self.link.heard().elapsed();
        let too_long = silent >= self.context.heartbeat * SILENT_BEATS;
        too_long.then(|| format!("the server was silent for {} s", silent.as_secs()))
    }

    /// Whether the server knows of a model that is not offered any more.
    fn is_stale(&self) -> bool {
        let offer = self.offers.borrow();
        !offer.models.is_empty() && !offer.models.contains(&self.model)
    }

    fn begin_to_leave(&mut self) {
        self.session.drain();
        self.leave_by = Some(Instant::now() + self.context.drain_timeout);
    }

    async fn leave(mut self) -> Ending {
        let cut_off = self.session.jobs();
        self.jobs.shutdown().await;
        self.link.close(LEAVING.0, LEAVING.1).await;
        Ending::Left(cut_off)
    }

    /// The tunnel is given up, to be opened again. Its jobs are dropped, and with them the
    /// connections of the backend.
    async fn end(mut self, reason: String) -> Ending {
        let ending = self.ending(self.lost(reason));
        self.jobs.shutdown().await;
        self.link.close(AGAIN.0, AGAIN.1).await;
        ending
    }

    fn closed(self) -> Ending {
        let outcome = match self.link.close_reason() {
            Some((code, reason)) => session::closed(code, &reason)
                .unwrap_or_else(|| self.lost(format!("the server closed: {code} {reason}"))),
            None => self.lost("the server went away".to_owned()),
        };
        self.ending(outcome)
    }

    fn ending(&self, outcome: Outcome) -> Ending {
        match self.leave_by {
            Some(_) => Ending::Left(self.session.jobs()),
            None => Ending::Again(outcome),
        }
    }

    fn lost(&self, reason: String) -> Outcome {
        Outcome::Lost { reason, stood: Some(self.since.elapsed()) }
    }

    fn send(&self, frame: &FromParticipant) {
        // A link that is closed says so when it is read next.
        let _ = self.outbox.push(frame.encode());
    }
}

async fn heartbeat_of(room: &InRoom, within: Duration) -> Result<(), HeartbeatFailed> {
    let missed = |_| Err(HeartbeatFailed::Missed(format!("no answer within {within:?}")));
    timeout(within, room.heartbeat()).await.unwrap_or_else(missed)
}

async fn or_never<F: Future>(future: std::pin::Pin<&mut Option<F>>) -> F::Output {
    match future.as_pin_mut() {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
