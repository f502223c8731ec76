//! Machines that are glued together in memory.

mod faults;
mod plain;
mod pulls;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use models::{Library, Sources};
use protocol::{
    admin::mesh::MeshTransfer,
    mesh::cluster::{Piece, decode},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Inner, Pull, home::Home};
use crate::{
    link::Link,
    peer::{Peer, PeerId, Peers},
    share::{Doing, Share, Sharing},
    testing::{FarEnd, Kind, id, link},
};

/// A machine: what it keeps lasts as long as its folder.
pub(super) struct Machine {
    pub(super) id: PeerId,
    pub(super) inner: Arc<Inner>,
    pub(super) home: Arc<dyn Home>,
    own: Arc<Own>,
    pub(super) dir: PathBuf,
}

struct Own {
    peers: Peers,
    /// Whether only those are asked that have proved themselves.
    strict: AtomicBool,
    /// The link that reaching a peer gives.
    reached: Mutex<Option<Arc<Link>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Home for Arc<Own> {
    fn peers(&self) -> Vec<Arc<Peer>> {
        self.peers.all()
    }

    fn may_ask(&self, peer: &Peer) -> bool {
        peer.link().is_none_or(|link| self.may_ask_over(&link))
    }

    fn may_ask_over(&self, link: &Link) -> bool {
        !self.strict.load(Ordering::Relaxed) || link.proved
    }

    fn reach(&self, _: Arc<Peer>) -> BoxFuture<'static, Option<Arc<Link>>> {
        let reached = self.reached.lock().unwrap().take();
        Box::pin(async { reached })
    }

    fn doing(&self) -> Doing {
        Doing { own_load: 0.0, throttle: 100 }
    }

    fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

impl Machine {
    /// A machine that offers what is in `dir/offered`, and fetches into `dir/models`.
    pub(super) fn new(number: u8, dir: &Path) -> Self {
        let share = Share { with: Sharing::Anyone, models_offered: true, ..Share::default() };
        Self::sharing(number, dir, share)
    }

    pub(super) fn sharing(number: u8, dir: &Path, share: Share) -> Self {
        let folders = vec![dir.join("offered")];
        let store = dir.join("models");
        let sources = Sources { folders, store: Some(store.clone()), ..Sources::default() };
        let inner = Arc::new(Inner::new(share, Arc::new(Library::new(sources)), store));
        let own = Arc::new(Own {
            peers: Peers::default(),
            strict: AtomicBool::default(),
            reached: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let home: Arc<dyn Home> = Arc::new(Arc::clone(&own));
        Self { id: id(number), inner, home, own, dir: dir.to_owned() }
    }

    pub(super) fn offer(&self, model: &str, file: &str, bytes: &[u8]) {
        let path = self.dir.join("offered").join(model).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(super) fn pull(&self, model: &str) -> Pull {
        self.inner.pulls.pull(Arc::clone(&self.home), model, None).unwrap()
    }

    pub(super) fn arrived(&self, model: &str, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.dir.join("models").join(model).join(file)).ok()
    }

    pub(super) fn receives(&self, link: &Arc<Link>, payload: &[u8]) {
        receives(&self.inner, &self.home, link, payload);
    }

    /// Stops whatever runs, as at the end of the program.
    pub(super) async fn stops(self) {
        self.own.stop.cancel();
        self.own.peers.all().iter().filter_map(|it| it.link()).for_each(|it| it.close("stop"));
        self.own.tasks.close();
        testkit::within("the end", self.own.tasks.wait()).await;
    }
}

fn receives(inner: &Arc<Inner>, home: &Arc<dyn Home>, link: &Arc<Link>, payload: &[u8]) {
    match payload.first() {
        Some(1 | 2) if link.sealed => {
            inner.piece(link, &Piece::decode(Bytes::copy_from_slice(payload)).unwrap());
        }
        _ => inner.message(home, link, decode(payload).unwrap().message),
    }
}

/// A change to a payload on its way (one that is emptied is lost), and whether the link lives on.
pub(super) type Meddle = Box<dyn FnMut(&mut Vec<u8>) -> bool + Send>;

/// Links two machines; what the second sends to the first passes through `meddle`. The links' ends.
pub(super) fn connect(
    a: &Machine,
    b: &Machine,
    kind: Kind,
    meddle: Meddle,
) -> (Arc<Link>, Arc<Link>) {
    let (to_b, from_a) = link(&b.id, kind);
    let (to_a, from_b) = link(&a.id, kind);
    a.own.peers.link(&to_b, |_, _| true).unwrap();
    b.own.peers.link(&to_a, |_, _| true).unwrap();
    carry(from_a, b, &to_a, &to_b, Box::new(|_| true));
    carry(from_b, a, &to_b, &to_a, meddle);
    (to_b, to_a)
}

/// Carries what one end sends to the machine at the other.
fn carry(mut from: FarEnd, to: &Machine, theirs: &Arc<Link>, ours: &Arc<Link>, mut meddle: Meddle) {
    let (inner, home, own) = (Arc::clone(&to.inner), Arc::clone(&to.home), Arc::clone(&to.own));
    let (theirs, ours) = (Arc::clone(theirs), Arc::clone(ours));
    tokio::spawn(async move {
        while let Some(payload) = from.0.next().await {
            let (head, body) = payload.parts();
            let mut bytes = [head, body].concat();
            if !meddle(&mut bytes) || theirs.is_closed() {
                break;
            }
            if !bytes.is_empty() {
                receives(&inner, &home, &theirs, &bytes);
            }
            tokio::task::yield_now().await;
        }
        ours.close("the other end is gone");
        theirs.close("cut");
        if let Some(peer) = own.peers.get(&theirs.peer) {
            peer.take_link(theirs.number);
        }
        inner.link_closed(&theirs);
    });
}

pub(super) fn straight() -> Meddle {
    Box::new(|_| true)
}

/// Cuts the link after `count` payloads.
pub(super) fn cut_after(count: usize) -> Meddle {
    let seen = AtomicUsize::new(0);
    Box::new(move |_| seen.fetch_add(1, Ordering::Relaxed) < count)
}

/// The last report of a pull.
pub(super) async fn end(mut pull: Pull) -> MeshTransfer {
    let end = async {
        while pull.next().await.is_some() {}
        pull.now()
    };
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("the pull ends")
}

/// Bytes that are not the same anywhere.
pub(super) fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(super) const MIB: usize = 1 << 20;

/// A folder for each of `N` machines.
pub(super) fn dirs<const N: usize>() -> (tempfile::TempDir, [PathBuf; N]) {
    let root = tempfile::tempdir().unwrap();
    let dirs = std::array::from_fn(|number| root.path().join(number.to_string()));
    (root, dirs)
}

/// Waits until a pull is in this state.
pub(super) async fn reaches(pull: &Pull, state: &str) {
    let is = async || pull.now().state == state;
    testkit::eventually(state, Duration::from_secs(20), is).await;
}

/// Time passes, though something waits on a thread of its own.
pub(super) async fn pass(secs: u64) {
    tokio::time::pause();
    for _ in 0..secs * 2 {
        tokio::time::advance(Duration::from_millis(500)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
}
