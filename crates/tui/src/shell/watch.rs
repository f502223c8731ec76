//! Watches a room, and goes on after a lost connection where it was.

use std::time::Duration;

use base::Backoff;
use client::{ClientError, RoomClient, RoomEvents};
use protocol::room::RoomEvent;
use tokio::{
    sync::mpsc::Sender,
    time::{MissedTickBehavior, interval, sleep},
};

use super::soon;
use crate::app::event::{Event, RoomNews};

/// Delays before a room is tried again.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));

/// How often a room's participants are polled: not every change is an event. A poll also notices a dead
/// connection that was not closed.
const PEOPLE: Duration = Duration::from_secs(2);

/// Watches until the room or the interface has ended.
pub(super) async fn run(
    room: Result<RoomClient, ClientError>,
    url: String,
    watch: u64,
    events: Sender<Event>,
) {
    let tell = Tell { watch, events };
    match room {
        Ok(room) => Watcher { room, url, tell, last: None }.run().await,
        Err(error) => tell.say(RoomNews::Refused(error)).await,
    }
}

struct Tell {
    watch: u64,
    events: Sender<Event>,
}

impl Tell {
    async fn say(&self, news: RoomNews) {
        // The receiver may be gone; then this task is about to end, too.
        let _ = self.events.send(Event::Room { watch: self.watch, news: Box::new(news) }).await;
    }
}

struct Watcher {
    room: RoomClient,
    url: String,
    tell: Tell,
    /// The id of the last event.
    last: Option<String>,
}

impl Watcher {
    async fn run(&mut self) {
        let mut retry = RETRY;
        loop {
            let error = match self.open().await {
                Ok(mut stream) => {
                    retry.reset();
                    let ended = self.follow(&mut stream).await;
                    // Also after a failure: the next stream goes on after this event.
                    let last = stream.last_id();
                    if !last.is_empty() {
                        self.last = Some(last.to_owned());
                    }
                    match ended {
                        Ok(()) => return,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if is_final(&error) {
                return self.tell.say(RoomNews::Refused(error)).await;
            }
            self.tell.say(RoomNews::Lost(error)).await;
            sleep(retry.next(rand::random())).await;
        }
    }

    async fn open(&self) -> Result<RoomEvents, ClientError> {
        // The stream is opened first: it holds what happens while the lists are asked for.
        let stream = soon(&self.url, self.room.watch(self.last.as_deref())).await?;
        let people = soon(&self.url, self.room.participants()).await?;
        let summary = soon(&self.url, self.room.summary()).await?;
        self.tell.say(RoomNews::Opened(summary)).await;
        self.tell.say(RoomNews::People(people)).await;
        Ok(stream)
    }

    /// Follows the events until the room was closed, or the connection failed.
    async fn follow(&self, stream: &mut RoomEvents) -> Result<(), ClientError> {
        tokio::select! {
            ended = self.happenings(stream) => ended,
            ended = self.people() => ended,
        }
    }

    async fn happenings(&self, stream: &mut RoomEvents) -> Result<(), ClientError> {
        while let Some(event) = stream.next().await? {
            let closed = matches!(event.event, RoomEvent::RoomClosed(_));
            self.tell.say(RoomNews::Happened(event)).await;
            if closed {
                return Ok(());
            }
        }
        let reason = "the stream of events ended".to_owned();
        Err(ClientError::Unreachable { url: self.url.clone(), reason })
    }

    async fn people(&self) -> Result<(), ClientError> {
        let mut every = interval(PEOPLE);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, and the participants were asked for just now.
        every.tick().await;
        loop {
            every.tick().await;
            let people = soon(&self.url, self.room.participants()).await?;
            self.tell.say(RoomNews::People(people)).await;
        }
    }
}

/// Whether another try would have the same result.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::NotFound { .. } | ClientError::BadToken | ClientError::NotAServer { .. } => {
            true
        }
        ClientError::Refused { status, .. } => matches!(status, 400 | 401 | 403 | 410),
        _ => false,
    }
}
