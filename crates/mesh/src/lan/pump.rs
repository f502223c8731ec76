//! Carries a link's bytes both ways for as long as the link lasts.
//!
//! One task reads and hands out the payloads, another one writes. On a sealed link payloads are cut
//! into records; on a plain one each is a frame. Waiting payloads are gathered into large writes,
//! small messages first.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use protocol::mesh::{ClusterMessage, frame::MAX_FRAME};
use seal::{MAX_RECORD, Opener, SealError, Sealer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::{Instant, Sleep, sleep_until, timeout},
};

use super::frames::{Broken, Frames, Incoming, farewell, farewell_reason};
use crate::{
    link::{Link, LinkEvents, Outgoing, Payload},
    liveness::{GONE, Kind, Liveness, Step, Usage},
    peer::Peers,
    this_machine::ThisMachine,
};

/// The most bytes that are gathered for one write. It is small so that answers pass soon while a
/// model is sent.
const BATCH: usize = 512 * 1024;

/// The payload of one record of a sealed link, in bytes.
const RECORD: usize = MAX_RECORD - 1 - 16;

/// A link is closed if its peer takes no bytes for this long.
const STUCK: Duration = Duration::from_secs(30);

/// The time limit for the running write and the farewell, once the link is closed.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A running link, and what its tasks need.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) machine: &'a ThisMachine,
    pub(super) peers: &'a Peers,
    pub(super) events: &'a dyn LinkEvents,
    pub(super) link: &'a Arc<Link>,
}

/// Reads and writes until either end closes the link. Returns why it was closed.
pub(super) async fn run<R, W>(
    run: Run<'_>,
    outgoing: Outgoing,
    frames: Frames<R, W>,
    seals: Option<(Sealer, Opener)>,
) -> String
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let link = run.link;
    let (sealer, opener) = seals.unzip();
    let Frames { incoming, writer } = frames;
    // Writing has a task of its own, since a peer that reads nothing must not keep this end from
    // reading.
    let mut sending = tokio::spawn(send(Arc::clone(link), outgoing, writer, sealer));
    let mut reading = Reader { run, incoming, opener };
    let why = reading.run().await;
    link.close(&why);
    // The farewell must leave before the socket is closed.
    if timeout(LAST_WORDS, &mut sending).await.is_err() {
        sending.abort();
    }
    reading.incoming.drain().await;
    link.why_closed().unwrap_or(why)
}

/// The side that reads.
struct Reader<'a, R> {
    run: Run<'a>,
    incoming: Incoming<R>,
    opener: Option<Opener>,
}

/// Why a link has to end.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("its peer closed it: {0}")]
    ClosedByPeer(String),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("nothing was heard of its peer for {} s", GONE.as_secs())]
    Gone,
    #[error("its peer took nothing of what it was sent for {} s", STUCK.as_secs())]
    Stuck,
}

impl From<protocol::mesh::frame::TooLong> for End {
    fn from(error: protocol::mesh::frame::TooLong) -> Self {
        Self::Broken(error.into())
    }
}

impl<R: AsyncRead + Unpin> Reader<'_, R> {
    async fn run(&mut self) -> String {
        let link = Arc::clone(self.run.link);
        tokio::select! {
            // `biased`: once this end has closed the link, nothing more is handed out.
            biased;
            () = link.closed() => link.why_closed().unwrap_or_default(),
            end = self.read() => end.to_string(),
        }
    }

    /// Reads until the link has to end.
    async fn read(&mut self) -> End {
        // Hands out bytes that came together with the last message of the handshake.
        if let Err(end) = self.hand_out() {
            return end;
        }
        let mut liveness = Liveness::new(Instant::now(), Kind::Lan);
        let mut timer = pin!(sleep_until(liveness.next()));
        loop {
            let step = tokio::select! {
                // `biased`, the timer first: a peer that sends without pause must not stop the
                // heartbeats.
                biased;
                () = &mut timer => self.beat(&mut liveness),
                read = self.incoming.fill() => self.take(&mut liveness, read),
            };
            if let Err(end) = step {
                return end;
            }
            wake_at(timer.as_mut(), liveness.next());
        }
    }

    fn beat(&self, liveness: &mut Liveness) -> Result<(), End> {
        let now = Instant::now();
        // A link on the local network is never idle.
        while let Some(step) = liveness.due(now, Usage { last: now, near: true }) {
            match step {
                // If the link is closed, the reader notices that itself.
                Step::Beat => _ = self.run.link.tell(&self.heartbeat()),
                Step::Degraded => self.set_degraded(true),
                Step::Gone | Step::Idle => return Err(End::Gone),
            }
        }
        Ok(())
    }

    fn take(&mut self, liveness: &mut Liveness, read: Result<(), Broken>) -> Result<(), End> {
        read?;
        if liveness.heard(Instant::now()) {
            self.set_degraded(false);
        }
        self.hand_out()
    }

    fn set_degraded(&self, is: bool) {
        let Run { link, peers, events, .. } = self.run;
        tracing::info!(peer = link.peer.short(), %link, silent = is, "a peer's link changed");
        link.set_degraded(is);
        if let Some(peer) = peers.get(&link.peer) {
            events.changed(&peer);
        }
    }

    fn heartbeat(&self) -> ClusterMessage {
        ClusterMessage::Heartbeat(Box::new(self.run.machine.facts.heartbeat()))
    }

    /// Hands out all payloads that are complete.
    fn hand_out(&mut self) -> Result<(), End> {
        let max = if self.opener.is_some() { MAX_RECORD } else { MAX_FRAME };
        while let Some(frame) = self.incoming.ready(max)? {
            let payload = match &mut self.opener {
                Some(opener) => opener.record(&frame)?,
                None => Some(frame),
            };
            if let Some(payload) = payload {
                self.payload(payload)?;
            }
        }
        Ok(())
    }

    fn payload(&self, payload: Bytes) -> Result<(), End> {
        if payload.is_empty() {
            self.run.machine.counts.bad("an empty frame");
        } else if let Some(reason) = farewell_reason(&payload) {
            return Err(End::ClosedByPeer(reason));
        } else {
            self.run.events.received(self.run.link, payload);
        }
        Ok(())
    }
}

/// Resets a timer if needed. At most reads it is right already, and a reset has a cost.
fn wake_at(timer: std::pin::Pin<&mut Sleep>, at: Instant) {
    if timer.deadline() != at {
        timer.reset(at);
    }
}

/// Writes the queued payloads until the link is closed, then the farewell.
async fn send<W: AsyncWrite + Unpin>(
    link: Arc<Link>,
    mut outgoing: Outgoing,
    mut writer: W,
    sealer: Option<Sealer>,
) {
    let mut batch = Batch { sealer, bytes: Vec::new() };
    if let Err(error) = write_all(&link, &mut outgoing, &mut writer, &mut batch).await {
        link.close(&error.to_string());
    }
    // This may fail, since the connection may be broken. The link is closed in any case.
    let _ = writer.shutdown().await;
}

async fn write_all<W: AsyncWrite + Unpin>(
    link: &Link,
    outgoing: &mut Outgoing,
    writer: &mut W,
    batch: &mut Batch,
) -> Result<(), End> {
    while let Some(payload) = outgoing.next().await {
        batch.put(&payload)?;
        while batch.bytes.len() < BATCH
            && let Some(payload) = outgoing.try_next()
        {
            batch.put(&payload)?;
        }
        batch.write(writer).await?;
    }
    // Stock peers do not know a farewell.
    if let Some(why) = link.why_closed().filter(|_| link.warren) {
        batch.put_bytes(&farewell(&why), &[])?;
        batch.write(writer).await?;
    }
    Ok(())
}

/// The bytes of one write.
struct Batch {
    sealer: Option<Sealer>,
    bytes: Vec<u8>,
}

impl Batch {
    fn put(&mut self, payload: &Payload) -> Result<(), SealError> {
        let (head, body) = payload.parts();
        self.put_bytes(head, body)
    }

    fn put_bytes(&mut self, head: &[u8], body: &[u8]) -> Result<(), SealError> {
        let Some(sealer) = &mut self.sealer else {
            // It fits, since a link accepts no payload longer than a frame may be.
            let length = (head.len() + body.len()) as u32;
            self.bytes.extend_from_slice(&length.to_be_bytes());
            self.bytes.extend_from_slice(head);
            self.bytes.extend_from_slice(body);
            return Ok(());
        };
        if body.is_empty() {
            return sealer.payload(head, &mut self.bytes);
        }
        sealer.record(true, head, &mut self.bytes)?;
        let mut rest = body;
        while rest.len() > RECORD {
            let (piece, later) = rest.split_at(RECORD);
            sealer.record(true, piece, &mut self.bytes)?;
            rest = later;
        }
        sealer.record(false, rest, &mut self.bytes)
    }

    async fn write<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> Result<(), End> {
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            // The time limit is for each write and not for the batch, since a slow peer may take
            // long to read all of it.
            let written = timeout(STUCK, writer.write(rest)).await.map_err(|_| End::Stuck)?;
            let written = written.map_err(Broken::Io)?;
            if written == 0 {
                return Err(End::Broken(Broken::Closed));
            }
            rest = &rest[written..];
        }
        self.bytes.clear();
        // Memory that a large message needed is given back.
        self.bytes.shrink_to(2 * BATCH);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
