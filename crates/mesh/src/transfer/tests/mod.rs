//! Machines that are glued together in memory.

mod faults;
mod plain;
mod pulls;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use models::{Library, Sources};
use protocol::{
    admin::mesh::MeshTransfer,
    mesh::cluster::{Piece, decode},
};

use super::{Pull, Transfers};
use crate::{
    link::Link,
    peer::{PeerId, Peers},
    settings::Settings,
    share::{Share, Sharing},
    testing::{FarEnd, Kind, Server, id, link, machine, settings},
    this_machine::ThisMachine,
    wan::Wan,
};

/// A machine: what it keeps lasts as long as its folder.
pub(super) struct Machine {
    pub(super) id: PeerId,
    pub(super) transfers: Arc<Transfers>,
    pub(super) machine: Arc<ThisMachine>,
    pub(super) peers: Arc<Peers>,
    pub(super) wan: Arc<Wan>,
    pub(super) dir: PathBuf,
}

impl Machine {
    /// A machine that offers what is in `dir/offered`, and fetches into `dir/models`.
    pub(super) fn new(number: u8, dir: &Path) -> Self {
        let share = Share { with: Sharing::Anyone, models_offered: true, ..Share::default() };
        Self::sharing(number, dir, share)
    }

    pub(super) fn sharing(number: u8, dir: &Path, share: Share) -> Self {
        Self::of(number, dir, Settings { share, ..settings() })
    }

    pub(super) fn of(number: u8, dir: &Path, settings: Settings) -> Self {
        let folders = vec![dir.join("offered")];
        let sources = Sources { folders, store: Some(dir.join("models")), ..Sources::default() };
        let settings = Settings { data_dir: dir.to_owned(), ..settings };
        let machine = machine(number, settings, Server::still().scheduler);
        let peers = Arc::<Peers>::default();
        let wan = Wan::alone(&machine, &peers);
        let transfers = Arc::new(Transfers::new(
            Arc::clone(&machine),
            Arc::clone(&peers),
            Arc::clone(&wan),
            Arc::new(Library::new(sources)),
        ));
        Self { id: id(number), transfers, machine, peers, wan, dir: dir.to_owned() }
    }

    pub(super) fn offer(&self, model: &str, file: &str, bytes: &[u8]) {
        let path = self.dir.join("offered").join(model).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(super) fn pull(&self, model: &str) -> Pull {
        self.transfers.pull(model, None).unwrap()
    }

    pub(super) fn arrived(&self, model: &str, file: &str) -> Option<Vec<u8>> {
        std::fs::read(self.dir.join("models").join(model).join(file)).ok()
    }

    pub(super) fn receives(&self, link: &Arc<Link>, payload: &[u8]) {
        receives(&self.transfers, link, payload);
    }

    /// Stops whatever runs, as at the end of the program.
    pub(super) async fn stops(self) {
        self.machine.stop.cancel();
        self.peers.all().iter().filter_map(|it| it.link()).for_each(|it| it.close("stop"));
        self.machine.tasks.close();
        testkit::within("the end", self.machine.tasks.wait()).await;
    }
}

fn receives(transfers: &Transfers, link: &Arc<Link>, payload: &[u8]) {
    match payload.first() {
        Some(1 | 2) if link.sealed => {
            transfers.piece(link, &Piece::decode(Bytes::copy_from_slice(payload)).unwrap());
        }
        _ => transfers.message(link, decode(payload).unwrap().message),
    }
}

/// Changes a payload on its way (an emptied one is lost), and says whether the link lives on.
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
    a.peers.link(&to_b, |_, _| true).unwrap();
    b.peers.link(&to_a, |_, _| true).unwrap();
    carry(from_a, b, &to_a, &to_b, Box::new(|_| true));
    carry(from_b, a, &to_b, &to_a, meddle);
    (to_b, to_a)
}

/// Carries what one end sends to the machine at the other.
fn carry(mut from: FarEnd, to: &Machine, theirs: &Arc<Link>, ours: &Arc<Link>, mut meddle: Meddle) {
    let (transfers, peers) = (Arc::clone(&to.transfers), Arc::clone(&to.peers));
    let (theirs, ours) = (Arc::clone(theirs), Arc::clone(ours));
    tokio::spawn(async move {
        while let Some(payload) = from.0.next().await {
            let (head, body) = payload.parts();
            let mut bytes = [head, body].concat();
            if !meddle(&mut bytes) || theirs.is_closed() {
                break;
            }
            if !bytes.is_empty() {
                receives(&transfers, &theirs, &bytes);
            }
            tokio::task::yield_now().await;
        }
        ours.close("the other end is gone");
        theirs.close("cut");
        if let Some(peer) = peers.get(&theirs.peer) {
            peer.take_link(theirs.number);
        }
        transfers.link_closed(&theirs);
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
