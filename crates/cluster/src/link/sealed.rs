//! Drives a sealed link between two Warrens: seals what leaves, opens what arrives, and watches for
//! signs of life.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use seal::{Opener, SealError, Sealer};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use wire::{Frame, OutboxReader};

use super::{
    carrier::{Carrier, CarrierEnd},
    frame::LinkFrame,
};

/// The longest message of a link, in bytes.
pub(crate) const MAX_MESSAGE: usize = 20 * 1024 * 1024;
/// Frames that gather while the link is busy leave together, up to this many bytes.
const TOGETHER: usize = 128 * 1024;
/// The number of missed signs of life after which a link counts as silent, and then as gone.
const SILENT: u32 = 3;
const GONE: u32 = 10;
/// The length before each record, in bytes.
const LENGTH: usize = 4;

/// A link between two Warrens, and everything that its task needs.
pub(crate) struct SealedLink {
    pub(crate) carrier: Carrier,
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
    /// The frames to send.
    pub(crate) frames: OutboxReader,
    /// Cancelled when the link must end.
    pub(crate) closing: CancellationToken,
    /// Whether nothing has come for too long.
    pub(crate) is_silent: Arc<AtomicBool>,
    /// How often each end gives a sign of life.
    pub(crate) heartbeat: Duration,
}

/// The words for a machine whose id another one has. They are the reason in a WebSocket's close
/// frame, so they must be short.
pub(crate) const COPIED: &str = "another machine has the same node id: one is a copy; start that with an \
    empty --data-dir, and join by an invitation";
const _: () = assert!(COPIED.len() <= 123, "the longest reason of a WebSocket");

/// Why a link ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkEnd {
    #[error("it was closed here")]
    ClosedHere,
    /// Two machines have the other end's id.
    #[error("{COPIED}")]
    Copied,
    #[error("nothing came from it for {0:?}")]
    Silent(Duration),
    #[error("what it sent cannot be read")]
    Unreadable,
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error(transparent)]
    Carrier(#[from] CarrierEnd),
}

impl SealedLink {
    /// Runs until the link ends. `received` gets each frame, and must not wait.
    pub(crate) async fn run(mut self, mut received: impl FnMut(LinkFrame)) -> LinkEnd {
        self.carrier.set_max_message(MAX_MESSAGE);
        let end = self.until_end(&mut received).await;
        self.is_silent.store(true, Ordering::Relaxed);
        let reason = match &end {
            Err(LinkEnd::ClosedHere) => "another link between the two took its place, or it ends",
            _ => "the link ended",
        };
        self.carrier.close(1000, reason).await;
        match end {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn until_end(
        &mut self,
        received: &mut impl FnMut(LinkFrame),
    ) -> Result<std::convert::Infallible, LinkEnd> {
        let mut beats = interval(self.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let has_room = self.carrier.outbox().has_room();
            let outbox = self.carrier.outbox().clone();
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return Err(LinkEnd::ClosedHere),
                message = self.carrier.next() => {
                    for payload in open_records(&mut self.opener, message?)? {
                        let frame = LinkFrame::decode(payload).map_err(|_| LinkEnd::Unreadable)?;
                        received(frame);
                    }
                }
                frame = self.frames.next(), if has_room => match frame {
                    Some(frame) => self.send(frame)?,
                    None => return Err(LinkEnd::ClosedHere),
                },
                // The same error appears when the link is read next.
                _room_or_closed = outbox.room(), if !has_room => {}
                _ = beats.tick() => self.beat()?,
            }
        }
    }

    /// Sends a frame, and the frames that have gathered behind it.
    fn send(&mut self, frame: Frame) -> Result<(), LinkEnd> {
        let mut records = Vec::new();
        let mut next = Some(frame);
        while let Some(Frame::Binary(bytes)) = next {
            seal_frame(&mut self.sealer, &bytes, &mut records)?;
            next = if records.len() < TOGETHER { self.frames.try_next() } else { None };
        }
        // The same error appears when the link is read next.
        let _link_ended = self.carrier.outbox().push(Bytes::from(records));
        Ok(())
    }

    fn beat(&mut self) -> Result<(), LinkEnd> {
        let silence = self.carrier.heard().elapsed();
        self.is_silent.store(silence >= self.heartbeat * SILENT, Ordering::Relaxed);
        if silence >= self.heartbeat * GONE {
            return Err(LinkEnd::Silent(silence));
        }
        self.carrier.ping();
        Ok(())
    }
}

/// Appends a frame to a message as sealed records.
pub(crate) fn seal_frame(
    sealer: &mut Sealer,
    frame: &[u8],
    records: &mut Vec<u8>,
) -> Result<(), SealError> {
    sealer.payload(frame, records)
}

/// The payloads of a message of sealed records.
pub(crate) fn open_records(
    opener: &mut Opener,
    mut message: Bytes,
) -> Result<Vec<Bytes>, SealError> {
    let mut payloads = Vec::new();
    while message.len() >= LENGTH {
        let length = message.get_u32() as usize;
        if length > message.len() {
            return Err(SealError::Malformed("a record is cut off"));
        }
        payloads.extend(opener.record(&message.split_to(length))?);
    }
    match message.is_empty() {
        true => Ok(payloads),
        false => Err(SealError::Malformed("a record's length is cut off")),
    }
}
