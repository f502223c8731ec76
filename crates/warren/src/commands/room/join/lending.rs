//! Lends a model from joining to leaving.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use client::{ClientError, RoomClient, room::event::EventEnvelope};
use daemon::{
    ConfigFile, ServeOptions, options::ProcessOptions, settings::DRAIN, signals, telemetry,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use worker::{
    Activity, Event, GiveUpReason, Lend, LentAlias, NetDialer, Protocol, ServerTarget, Worker,
    WorkerConfig, WorkerEnd,
};

use super::{
    super::{
        follow::{Follow, Next},
        tokens::{OwnParticipant, RoomTokens},
    },
    screen::Screen,
    tally::Tally,
};
use crate::{
    commands::{span_export::SpanExport, table::plain},
    exit::usage,
};

/// The time between two drawings of the status line.
const DRAWN: Duration = Duration::from_millis(500);

/// Events that may wait to be shown; further ones are dropped.
const WAITING: usize = 256;

/// Everything that lending a model to a room needs.
pub(super) struct Lending {
    pub(super) target: ServerTarget,
    pub(super) nickname: String,
    /// Watched for the tokens of its requests.
    pub(super) room: RoomClient,
    pub(super) code: String,
    pub(super) lend: Lend,
    pub(super) aliases: Arc<[LentAlias]>,
    pub(super) protocol: Protocol,
    pub(super) tokens: Option<RoomTokens>,
    pub(super) who: OwnParticipant,
    pub(super) process: ProcessOptions,
    pub(super) stay: bool,
}

impl Lending {
    /// Lends until a stop is asked for.
    ///
    /// # Errors
    /// When it had to leave, or could not join.
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut screen = Screen::new();
        let process = ServeOptions::from(self.process.clone()).or(file.serve.clone());
        // On a terminal the screen shows everything that a person needs.
        let filter = if screen.is_terminal() { "error" } else { "warn" };
        let filter = process.log.clone().unwrap_or_else(|| filter.to_owned());
        let _log = telemetry::log::start(process.log_format.unwrap_or_default(), &filter)
            .map_err(usage)?;
        let stop = signals::shutdown()?;
        let (worker, news, span_export) = self.worker(&process)?;
        // Events cost the server something, so they are read only if a person sees them.
        let watched = screen.is_terminal().then(|| follow_events(self.room.clone()));
        let (room, happened) = watched.unzip();
        let happened = happened.unwrap_or_else(|| mpsc::channel(1).1);
        let watch = Watch { activity: worker.activity(), news, happened, stop };
        let ended = self.show(worker, watch, &mut screen).await;
        span_export.end().await;
        drop(room);
        self.left(&ended, &mut screen).await
    }

    fn worker(
        &self,
        process: &ServeOptions,
    ) -> anyhow::Result<(Worker, mpsc::Receiver<Event>, SpanExport)> {
        let mut config = WorkerConfig::new(&self.nickname);
        config.servers = vec![self.target.clone()];
        config.backends = vec![self.lend.clone()];
        config.aliases = Arc::clone(&self.aliases);
        config.protocol = self.protocol;
        config.drain_timeout = process.drain_timeout_secs.map_or(DRAIN, |seconds| seconds.0);
        let span_export = SpanExport::start(process, &mut config)?;
        let (sender, news) = mpsc::channel(WAITING);
        // The worker must not wait for the display, so an event that does not fit is dropped.
        let tell = Arc::new(move |event: &Event| drop(sender.try_send(event.clone())));
        let worker = Worker::new(config, NetDialer).map_err(|error| usage(error.into()))?;
        Ok((worker.observed_by(tell), news, span_export))
    }

    async fn show(&self, worker: Worker, mut watch: Watch, screen: &mut Screen) -> WorkerEnd {
        let (mut tally, began) = (Tally::default(), Instant::now());
        let running = worker.run(watch.stop.clone());
        tokio::pin!(running);
        let mut ticks = interval(DRAWN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = false;
        loop {
            tokio::select! {
                ended = &mut running => {
                    while let Ok(event) = watch.news.try_recv() {
                        self.tell(event, screen).await;
                    }
                    return ended;
                }
                Some(event) = watch.news.recv() => self.tell(event, screen).await,
                Some(event) = watch.happened.recv() => tally.take(&self.who.id, &event.event),
                _ = ticks.tick() => {
                    let (answered, now) = (watch.activity.answered(), began.elapsed());
                    let line = tally.line(answered, watch.activity.in_flight(), now);
                    screen.show(&format!("{}: {line}", plain(&self.code)), answered);
                }
                () = watch.stop.cancelled(), if !stopping => {
                    stopping = true;
                    screen.tell(&leaving(watch.activity.in_flight()));
                }
            }
        }
    }

    async fn tell(&self, event: Event, screen: &mut Screen) {
        match event {
            Event::Joined { participant_id, session_token, tunnel, .. } => {
                let by = if tunnel { ", by a tunnel" } else { "" };
                let (code, name) = (plain(&self.code), plain(&self.nickname));
                screen.tell(&format!("joined {code} as {name} ({}){by}", plain(&participant_id)));
                let token = session_token.map(|token| token.expose().to_owned());
                self.keep(&participant_id, token, screen).await;
            }
            Event::Models { backend, models } => {
                screen.tell(&format!("{} offers {}", plain(&backend), plain(&models.join(", "))));
            }
            Event::Connected { warnings, .. } => {
                warnings
                    .iter()
                    .for_each(|warning| screen.tell(&format!("warning: {}", plain(warning))));
            }
            Event::Disconnected { reason, retry_in, .. }
            | Event::Refused { reason, retry_in, .. } => {
                let wait = retry_in.as_secs_f64();
                screen.tell(&format!(
                    "not connected: {}; trying again in {wait:.1} s",
                    plain(&reason)
                ));
            }
            Event::Draining { reason, .. } => {
                screen.tell(&format!("the server takes nothing new: {}", plain(&reason)));
            }
            Event::BackendFailed { backend, reason } => {
                screen.tell(&format!(
                    "{} gives no list of models: {}",
                    plain(&backend),
                    plain(&reason)
                ));
            }
            // The first is the reason that is shown at the end; the others do not occur in rooms.
            Event::GaveUp { .. } | Event::NodeConnected { .. } | Event::Withdrawn { .. } => {}
        }
    }

    async fn keep(&self, id: &str, session_token: Option<String>, screen: &mut Screen) {
        let Some(tokens) = &self.tokens else { return };
        let who = OwnParticipant { id: id.to_owned(), session_token, ..self.who.clone() };
        if let Err(error) = tokens.keep_participant(who).await {
            screen.tell(&format!(
                "warning: this machine will not be the same the next time: {error:#}"
            ));
        }
    }

    async fn left(&self, ended: &WorkerEnd, screen: &mut Screen) -> anyhow::Result<()> {
        if ended.cut_off > 0 {
            screen.tell(&format!("{} unfinished requests were cut off", ended.cut_off));
        }
        if let (Some(tokens), false) = (&self.tokens, self.stay) {
            // The token is void now, but the next join has the same id.
            let who = OwnParticipant { session_token: None, ..self.who.clone() };
            tokens.keep_participant(who).await?;
        }
        match &ended.gave_up {
            None => Ok(()),
            Some(GiveUpReason::NoRoom) => {
                bail!(ClientError::NotFound { words: GiveUpReason::NoRoom.to_string() })
            }
            Some(why) => bail!("{why}"),
        }
    }
}

/// The sources of what the screen shows.
struct Watch {
    activity: Activity,
    news: mpsc::Receiver<Event>,
    happened: mpsc::Receiver<EventEnvelope>,
    stop: CancellationToken,
}

/// The events of the room, until the handle is dropped. Errors are ignored: without events only the counts of
/// tokens are missing.
fn follow_events(room: RoomClient) -> (AbortOnDropHandle<()>, mpsc::Receiver<EventEnvelope>) {
    let (sender, happened) = mpsc::channel(WAITING);
    let watching = async move {
        let mut follow = Follow::new(room);
        loop {
            match follow.next().await {
                Ok(Next::Event(event)) => {
                    if sender.send(*event).await.is_err() {
                        return;
                    }
                }
                Ok(Next::Lost(..)) => {}
                Ok(Next::Over) | Err(_) => return,
            }
        }
    };
    (AbortOnDropHandle::new(tokio::spawn(watching)), happened)
}

fn leaving(in_flight: u64) -> String {
    match in_flight {
        0 => "leaving".to_owned(),
        some => format!("leaving when {some} in flight are done; a second Ctrl-C ends it at once"),
    }
}
