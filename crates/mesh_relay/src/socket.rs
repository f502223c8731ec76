//! The task of one connection.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use protocol::mesh::relay::{Fault, Forward, MAX_MESSAGE, ToRelay};
use tokio::{
    sync::oneshot,
    time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout},
};
use wire::{Frame, Link, LinkError, Outbox, Utf8Bytes};

use crate::{
    port::{Delivery, Goodbye},
    relay::{MAX_OF_A_STRANGER, Shared},
    switchboard::{Challenge, Connection, ReceivedMessage, Standing},
};

/// How often a node is pinged.
const PING: Duration = Duration::from_secs(15);

/// A node that gives no sign of life for this long is gone.
const DEAD: Duration = Duration::from_secs(45);

/// Texts up to this size, in bytes, are copied. Otherwise a slice would keep the whole buffer that
/// it was read into, until its receiver has taken it.
const COPIED: usize = 8 * 1024;

/// The most messages that are handled in one turn.
const BATCH: usize = 32;

/// A shorter pause is skipped, since timers are not that exact.
const LEAST_PAUSE: Duration = Duration::from_millis(2);

/// Why a connection ends.
enum End {
    /// The relay closes it.
    Goodbye(Goodbye),
    /// The node has closed it.
    Closed,
    /// It failed.
    Broken(LinkError),
    /// Its node gave no sign of life.
    Dead,
}

struct Socket<'a> {
    shared: &'a Shared,
    connection: Connection,
    link: Link,
    outbox: Outbox,
    closing: oneshot::Receiver<Goodbye>,
    ticks: Interval,
    /// Until when nothing was read, so that a sign of life may have come unseen.
    deaf_until: Instant,
    registered: bool,
}

/// Serves a link until it ends.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    link: Link,
    outbox: Outbox,
    challenge: Option<Challenge>,
) {
    let (connection, closing) = match shared.connected(outbox.clone(), challenge) {
        Ok(connected) => connected,
        Err((code, reason)) => return link.close(code, reason).await,
    };
    // However this task ends, its node leaves the switchboard.
    let _gone = DisconnectOnDrop { shared, connection };
    let mut ticks = interval(PING);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let deaf_until = Instant::now();
    let mut socket =
        Socket { shared, connection, link, outbox, closing, ticks, deaf_until, registered: false };
    let end = socket.until_end().await;
    socket.end(end).await;
}

struct DisconnectOnDrop<'a> {
    shared: &'a Shared,
    connection: Connection,
}

impl Drop for DisconnectOnDrop<'_> {
    fn drop(&mut self) {
        self.shared.gone(self.connection);
    }
}

impl Socket<'_> {
    async fn until_end(&mut self) -> End {
        loop {
            let end = tokio::select! {
                // The goodbye comes first. Otherwise a node that sends without pause would hold it
                // up.
                biased;
                goodbye = &mut self.closing => end_of(goodbye),
                frame = self.link.next() => match frame {
                    Ok(Some(frame)) => self.frames(frame).await,
                    Ok(None) => Err(End::Closed),
                    Err(error) => Err(End::Broken(error)),
                },
                _ = self.ticks.tick() => self.tick(),
            };
            if let Err(end) = end {
                return end;
            }
        }
    }

    async fn end(self, end: End) {
        // The other nodes should not have to wait for the closing handshake.
        self.shared.gone(self.connection);
        match end {
            End::Goodbye((code, reason)) => self.link.close(code, reason).await,
            End::Dead => self.link.close(1011, "no sign of life").await,
            End::Closed => {}
            End::Broken(error) => tracing::info!(%error, "a node's link broke"),
        }
    }

    fn tick(&mut self) -> Result<(), End> {
        self.shared.sweep();
        let heard = self.link.heard().max(self.deaf_until);
        if heard.elapsed() >= DEAD {
            return Err(End::Dead);
        }
        self.link.ping().map_err(End::Broken)
    }

    async fn frames(&mut self, first: Frame) -> Result<(), End> {
        self.frame(first).await?;
        for _ in 1..BATCH {
            let Some(frame) = self.link.ready() else { break };
            self.frame(frame).await?;
        }
        Ok(())
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), End> {
        let Some(text) = text_of(frame) else {
            let text = Utf8Bytes::default();
            let (standing, _) = self.heard(&text, Err(Fault::NotJson));
            return self.stand(standing).await;
        };
        let message = ToRelay::read(&text);
        let session = match &message {
            Ok(ToRelay::Forward(Forward { session, .. })) => session.to_string(),
            _ => String::new(),
        };
        let (standing, delivery) = self.heard(&text, message);
        if let Some(delivery) = delivery {
            self.deliver(delivery, &session).await?;
        }
        self.stand(standing).await
    }

    fn heard(
        &self,
        text: &Utf8Bytes,
        message: Result<ToRelay<'_>, Fault>,
    ) -> (Standing, Option<Delivery>) {
        let has_room = self.outbox.has_room();
        self.shared.heard(self.connection, ReceivedMessage { text, message, has_room })
    }

    async fn stand(&mut self, standing: Standing) -> Result<(), End> {
        if standing.registered != self.registered {
            // Strangers may send only short messages.
            self.registered = standing.registered;
            let most = if self.registered { MAX_MESSAGE } else { MAX_OF_A_STRANGER };
            self.link.set_max_message(most);
        }
        if standing.pause < LEAST_PAUSE {
            return Ok(());
        }
        self.shared.waits.fetch_add(1, Ordering::Relaxed);
        let pause = sleep(standing.pause);
        self.without_reading(pause).await
    }

    /// Hands a message to its receiver. Nothing more is read from its sender until there is room
    /// for it.
    async fn deliver(&mut self, delivery: Delivery, session: &str) -> Result<(), End> {
        let to = delivery.to;
        let mut sending = pin!(delivery.send());
        // There is nearly always room at once; then no pause has to be counted.
        if poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx).is_ready())).await {
            // If the receiver is gone, the switchboard tells the sender so.
            return Ok(());
        }
        self.shared.waits.fetch_add(1, Ordering::Relaxed);
        let sent = timeout(self.shared.patience, sending);
        if self.without_reading(sent).await?.is_err() {
            tracing::info!(session, "a relay session is closed: its receiver does not read");
            self.shared.give_up(self.connection, to, session);
        }
        Ok(())
    }

    /// Waits for a future. Meanwhile the link is written, but not read.
    async fn without_reading<T>(&mut self, wait: impl Future<Output = T>) -> Result<T, End> {
        let waited = tokio::select! {
            biased;
            waited = wait => Ok(waited),
            goodbye = &mut self.closing => end_of(goodbye).and(Err(End::Closed)),
            error = self.link.write_only() => Err(End::Broken(error)),
        };
        // A sign of life may have come meanwhile, unread.
        self.deaf_until = Instant::now();
        waited
    }
}

fn end_of(goodbye: Result<Goodbye, oneshot::error::RecvError>) -> Result<(), End> {
    Err(goodbye.map_or(End::Closed, End::Goodbye))
}

/// The text of a text or binary frame. `None` if it is no text.
fn text_of(frame: Frame) -> Option<Utf8Bytes> {
    match frame {
        Frame::Text(text) if text.len() <= COPIED => Some(text.as_str().into()),
        Frame::Text(text) => Some(text),
        Frame::Binary(bytes) => Utf8Bytes::try_from(bytes).ok(),
    }
}
