//! Receives what peers send for a pull, and runs the thread that checks and writes it. The tasks
//! that read the links put messages in here, and never wait.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use models::{Arrival, ArrivalError};
use protocol::mesh::cluster::{ModelManifest, Piece};
use tokio::{
    sync::{mpsc, oneshot},
    task::{JoinHandle, spawn_blocking},
};

use super::slices::{Key, MAX_EXPECTED, SliceOutcome, Slices};
use crate::{link::Link, peer::PeerId, transfer::shared::Shared};

/// The most peers that one pull fetches from at once.
pub(super) const MAX_SOURCES: usize = 8;

/// The most pieces that wait to be written. No more than that are ever expected.
const MAX_WRITES: usize = MAX_SOURCES * MAX_EXPECTED;

/// The most events that wait. If one is lost, the pull notices at its next check of the links.
const MAX_EVENTS: usize = 1_024;

/// A change that a pull reacts to.
#[derive(Debug)]
pub(super) enum Event {
    /// A piece or a tree from a peer was checked and written, or was wrong.
    Written(PeerId, Key, Result<bool, ArrivalError>),
    /// The peer of this link cannot go on with the transfer, for this reason.
    Refused(u64, String),
    /// The link with this number has ended.
    Closed(u64),
}

/// A piece or a tree that waits to be checked and written.
pub(super) struct Write {
    pub(super) from: PeerId,
    pub(super) key: Key,
    pub(super) bytes: Vec<u8>,
}

/// A peer's answer to a request for a manifest.
type Answer = Result<ModelManifest, String>;

/// The data and answers that peers send for a pull.
pub(super) struct Inbox {
    manifests: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    pieces: Mutex<PieceInbox>,
    events: mpsc::Sender<Event>,
}

/// The slices that are expected, and the queue for complete pieces.
#[derive(Default)]
struct PieceInbox {
    slices: Slices,
    writer: Option<mpsc::Sender<Write>>,
}

impl Inbox {
    /// An inbox, and the queue of events for its pull.
    pub(super) fn new() -> (Self, mpsc::Receiver<Event>) {
        let (events, queue) = mpsc::channel(MAX_EVENTS);
        let inbox = Self { manifests: Mutex::default(), pieces: Mutex::default(), events };
        (inbox, queue)
    }

    pub(super) fn events(&self) -> mpsc::Sender<Event> {
        self.events.clone()
    }

    /// Begins to receive pieces. Returns the queue of what has to be written.
    pub(super) fn open(&self) -> mpsc::Receiver<Write> {
        let (writer, writes) = mpsc::channel(MAX_WRITES);
        *self.pieces() = PieceInbox { slices: Slices::default(), writer: Some(writer) };
        writes
    }

    /// Stops receiving pieces. The writer's queue ends, and the writer with it.
    pub(super) fn close(&self) {
        *self.pieces() = PieceInbox::default();
    }

    /// The receiver of the next manifest that comes over this link.
    pub(super) fn next_manifest(&self, link: &Link) -> oneshot::Receiver<Answer> {
        let (sender, answer) = oneshot::channel();
        let mut manifests = lock(&self.manifests);
        manifests.retain(|_, waiting| !waiting.is_closed());
        manifests.insert(link.number, sender);
        answer
    }

    /// Handles a manifest, or the reason why none will come. Returns whether it was requested.
    pub(super) fn manifest(&self, link: &Link, answer: Answer) -> bool {
        let Some(waiting) = lock(&self.manifests).remove(&link.number) else { return false };
        waiting.send(answer).is_ok()
    }

    /// Handles a peer's message that it cannot go on. Returns whether the peer was asked for
    /// anything.
    pub(super) fn refused(&self, link: &Link, why: String) -> bool {
        self.manifest(link, Err(why.clone())) || self.tell(Event::Refused(link.number, why))
    }

    /// Notes that a piece or tree was requested over a link.
    pub(super) fn expect(&self, link: u64, key: Key, length: u32) {
        self.pieces().slices.expect(link, key, length);
    }

    /// Notes that nothing more is expected over this link.
    pub(super) fn forget(&self, link: u64) {
        self.pieces().slices.forget(link);
    }

    /// Handles a slice. Returns whether it was requested.
    pub(super) fn slice(&self, link: &Arc<Link>, piece: &Piece) -> bool {
        let mut pieces = self.pieces();
        match pieces.slices.take(link.number, piece) {
            SliceOutcome::Unasked => false,
            SliceOutcome::Part => true,
            SliceOutcome::Whole(key, bytes) => {
                let write = Write { from: link.peer.clone(), key, bytes };
                pieces.writer.as_ref().is_some_and(|writer| writer.try_send(write).is_ok())
            }
        }
    }

    /// Handles the end of a link.
    pub(super) fn link_closed(&self, link: &Link) {
        lock(&self.manifests).remove(&link.number);
        self.forget(link.number);
        self.tell(Event::Closed(link.number));
    }

    fn tell(&self, event: Event) -> bool {
        self.events.try_send(event).is_ok()
    }

    fn pieces(&self) -> MutexGuard<'_, PieceInbox> {
        lock(&self.pieces)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that checks and writes. It runs until the inbox is closed, or its events have
/// no receiver.
pub(super) fn start_writer(
    shared: Arc<Shared>,
    arrival: Arc<Arrival>,
    mut writes: mpsc::Receiver<Write>,
    events: mpsc::Sender<Event>,
) -> JoinHandle<()> {
    spawn_blocking(move || {
        while let Some(Write { from, key, bytes }) = writes.blocking_recv() {
            let result = write(&arrival, key, &bytes);
            if matches!((key, &result), (Key::Data(_), Ok(true))) {
                shared.counts.bytes_in.add(bytes.len() as u64);
            }
            if events.blocking_send(Event::Written(from, key, result)).is_err() {
                return;
            }
        }
    })
}

fn write(arrival: &Arrival, key: Key, bytes: &[u8]) -> Result<bool, ArrivalError> {
    match key {
        Key::Tree(file) if arrival.tree(file).is_some() => Ok(false),
        Key::Tree(file) => arrival.set_tree(file, bytes).map(|()| true),
        Key::Data(piece) => arrival.write(piece, bytes),
    }
}
