//! Hash trees and pieces, read ahead of what is sent, in the order in which they were asked for.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use models::Hashed;
use protocol::mesh::cluster::{Piece, PieceKind};
use tokio::{sync::mpsc, task::spawn_blocking};

use super::{MAX_COUNT, Outbound, Serving, refuse};
use crate::{
    link::{Carrier, Link, LinkClosed},
    transfer::shared::Shared,
};

/// The pieces that are read ahead of the sender.
const AHEAD: usize = 3;

/// A slice on the LAN, in bytes. An answer that comes meanwhile waits for one or two of them.
const LAN_SLICE: usize = 128 * 1024;

/// A slice through a relay, in bytes: with what stands around it, it fits into one frame.
const RELAY_SLICE: usize = 56 * 1024;

/// A request of a peer.
pub(super) struct Ask {
    pub(super) outbound: Arc<Outbound>,
    pub(super) wanted: Wanted,
}

/// The requested part of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The hash tree of this file.
    Tree { file: u32 },
    /// `count` pieces of this file.
    Pieces { file: u32, first: u32, count: u32 },
}

impl Wanted {
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

    /// Each tree or piece of it on its own.
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

/// Something that was read, or could not be.
type ReadResult = (Ask, io::Result<Vec<u8>>);

/// Sends what is asked for, until nothing more can be.
pub(super) async fn send(serving: Arc<Serving>, link: Arc<Link>, mut asks: mpsc::Receiver<Ask>) {
    let asks = stream::poll_fn(move |cx| asks.poll_recv(cx));
    let each = asks.flat_map(|ask| {
        let Ask { outbound, wanted } = ask;
        stream::iter(
            wanted.each().map(move |wanted| Ask { outbound: Arc::clone(&outbound), wanted }),
        )
    });
    let mut read = each.map(read).buffered(AHEAD);
    loop {
        let next = tokio::select! {
            next = read.next() => next,
            () = link.closed() => return,
        };
        let Some((ask, bytes)) = next else { return };
        if ask.outbound.stop.is_cancelled() {
            continue;
        }
        let sent = match bytes {
            Ok(bytes) => send_slices(&serving.shared, &link, &ask, bytes.into()).await,
            Err(error) => {
                unreadable(&serving, &link, &ask.outbound, &error).await;
                Ok(())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn read(ask: Ask) -> ReadResult {
    let (outbound, wanted) = (Arc::clone(&ask.outbound), ask.wanted);
    let read = spawn_blocking(move || {
        let hashed = outbound.hashed.get().filter(|_| !outbound.stop.is_cancelled());
        hashed.map_or(Ok(Vec::new()), |hashed| match wanted {
            Wanted::Tree { file } => {
                Ok(hashed.trees.get(file as usize).map(|it| it.to_bytes()).unwrap_or_default())
            }
            Wanted::Pieces { file, first, .. } => hashed.open(file as usize)?.piece(first.into()),
        })
    });
    let bytes = read.await.unwrap_or_else(|_| Err(io::Error::other("the server is stopping")));
    (ask, bytes)
}

async fn send_slices(
    shared: &Shared,
    link: &Link,
    ask: &Ask,
    bytes: Bytes,
) -> Result<(), LinkClosed> {
    let (kind, file, piece) = match ask.wanted {
        Wanted::Tree { file } => (PieceKind::Tree, file, 0),
        Wanted::Pieces { file, first, .. } => (PieceKind::Data, file, first),
    };
    let at_most = match link.carrier {
        Carrier::Lan(_) => LAN_SLICE,
        Carrier::Relay(_) => RELAY_SLICE,
    };
    let Ok(length) = u32::try_from(bytes.len()) else { return Ok(()) };
    for start in (0..bytes.len()).step_by(at_most) {
        let slice = bytes.slice(start..bytes.len().min(start + at_most));
        let transfer = ask.outbound.uuid;
        // Within the length, which fits.
        let offset = start as u32;
        link.send(Piece { kind, transfer, file, piece, offset, length, slice }).await?;
    }
    if kind == PieceKind::Data {
        ask.outbound.sent(shared, length.into());
    }
    Ok(())
}

/// The files of a manifest cannot be read: they were changed or removed.
async fn unreadable(serving: &Serving, link: &Link, outbound: &Outbound, error: &io::Error) {
    tracing::warn!(peer = %link.peer.short(), %error, "a model that is passed on cannot be read");
    serving.shared.shelf.forget().await;
    serving.take(link, &outbound.id);
    outbound.stop.cancel();
    refuse(link, &outbound.id, "the files were changed, or cannot be read");
}
