//! Sends hash trees and pieces in the order of the requests. Some are read ahead of the sender.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use models::Hashed;
use protocol::mesh::cluster::{Piece, PieceKind};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{MAX_COUNT, ModelServer, Outbound, refuse};
use crate::{
    link::{Carrier, Link, LinkClosed},
    transfer::shared::Shared,
};

/// How many pieces are read ahead of the sender.
const AHEAD: usize = 3;

/// The size of a slice on the LAN, in bytes. An answer that is queued meanwhile waits until one or
/// two slices were sent.
const LAN_SLICE: usize = 128 * 1024;

/// The size of a slice through a mesh relay, in bytes. With its envelope it fits into one frame.
const RELAY_SLICE: usize = 56 * 1024;

/// A request for a part of a model.
pub(super) struct PartRequest {
    pub(super) outbound: Arc<Outbound>,
    pub(super) part: Part,
}

/// A part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The hash tree of this file.
    Tree { file: u32 },
    /// `count` pieces of this file.
    Pieces { file: u32, first: u32, count: u32 },
}

impl Part {
    /// Whether the model has all of it.
    pub(super) fn is_inside(self, hashed: &Hashed) -> bool {
        let tree = |file: u32| hashed.trees.get(file as usize);
        match self {
            Self::Tree { file } => tree(file).is_some(),
            Self::Pieces { file, first, count } => {
                let end = u64::from(first) + u64::from(count);
                let has = |tree: &Arc<models::Tree>| end <= tree.values().len() as u64;
                (1..=MAX_COUNT).contains(&count) && tree(file).is_some_and(has)
            }
        }
    }

    /// Splits it into single trees or pieces.
    fn each(self) -> impl Iterator<Item = Self> {
        let (file, first, count) = match self {
            Self::Tree { file } => (file, 0, 1),
            Self::Pieces { file, first, count } => (file, first, count),
        };
        (first..first.saturating_add(count)).map(move |first| match self {
            Self::Tree { .. } => self,
            Self::Pieces { .. } => Self::Pieces { file, first, count: 1 },
        })
    }
}

/// A part that was read, or that could not be read.
type ReadResult = (PartRequest, io::Result<Vec<u8>>);

/// Sends the requested parts, until the link is closed.
pub(super) async fn send(
    serving: Arc<ModelServer>,
    link: Arc<Link>,
    mut requests: mpsc::Receiver<PartRequest>,
) {
    let requests = stream::poll_fn(move |cx| requests.poll_recv(cx));
    let each = requests.flat_map(|request| {
        let PartRequest { outbound, part } = request;
        stream::iter(
            part.each().map(move |part| PartRequest { outbound: Arc::clone(&outbound), part }),
        )
    });
    // Several are read at the same time, but they are sent in order: a peer accepts the slices of a
    // piece only in order.
    let mut read = each.map(read).buffered(AHEAD);
    loop {
        let next = tokio::select! {
            next = read.next() => next,
            () = link.closed() => return,
        };
        let Some((request, bytes)) = next else { return };
        if request.outbound.stop.is_cancelled() {
            continue;
        }
        let sent = match bytes {
            Ok(bytes) => send_slices(&serving.shared, &link, &request, bytes.into()).await,
            Err(error) => {
                unreadable(&serving, &link, &request.outbound, &error).await;
                Ok(())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn read(request: PartRequest) -> ReadResult {
    let (outbound, part) = (Arc::clone(&request.outbound), request.part);
    let read = spawn_blocking(move || {
        let hashed = outbound.hashed.get().filter(|_| !outbound.stop.is_cancelled());
        hashed.map_or(Ok(Vec::new()), |hashed| match part {
            Part::Tree { file } => {
                Ok(hashed.trees.get(file as usize).map(|it| it.to_bytes()).unwrap_or_default())
            }
            Part::Pieces { file, first, .. } => hashed.open(file as usize)?.piece(first.into()),
        })
    });
    let bytes = read.await.unwrap_or_else(|_| Err(io::Error::other("the server is stopping")));
    (request, bytes)
}

async fn send_slices(
    shared: &Shared,
    link: &Link,
    request: &PartRequest,
    bytes: Bytes,
) -> Result<(), LinkClosed> {
    let (kind, file, piece) = match request.part {
        Part::Tree { file } => (PieceKind::Tree, file, 0),
        Part::Pieces { file, first, .. } => (PieceKind::Data, file, first),
    };
    let at_most = match link.carrier {
        Carrier::Lan(_) => LAN_SLICE,
        Carrier::Relay(_) => RELAY_SLICE,
    };
    let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
    for start in (0..bytes.len()).step_by(at_most) {
        let slice = bytes.slice(start..bytes.len().min(start + at_most));
        let transfer = request.outbound.uuid;
        // It fits, since it is less than the length.
        let offset = start as u32;
        link.send(Piece { kind, transfer, file, piece, offset, length, slice }).await?;
    }
    if kind == PieceKind::Data {
        request.outbound.sent(shared, length.into());
    }
    Ok(())
}

/// Ends a transfer whose files cannot be read, because they were changed or removed after the
/// manifest was sent.
async fn unreadable(serving: &ModelServer, link: &Link, outbound: &Outbound, error: &io::Error) {
    tracing::warn!(peer = %link.peer.short(), %error, "a model that is passed on cannot be read");
    serving.shared.shelf.forget().await;
    serving.take(link, &outbound.id);
    outbound.stop.cancel();
    refuse(link, &outbound.id, "the files were changed, or cannot be read");
}
