//! The plain peers that are linked here, or were.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wire::Outbox;

use super::{inbound::answers::Answers, outbound::router::Router};
use crate::member::PlainPeer;

/// The most plain peers that are remembered.
const MOST_PEERS: usize = 256;
/// The most plain peers that are shown to other members.
const MOST_SHOWN: usize = 64;
/// The most links of one plain peer: each end may open one, and a broken one may not have been
/// noticed yet.
const MOST_LINKS: usize = 4;

/// The plain peers that are linked here, or were since the start.
#[derive(Default)]
pub(crate) struct PlainPeers {
    peers: Mutex<BTreeMap<String, Peer>>,
    next: AtomicU64,
}

#[derive(Default)]
struct Peer {
    name: String,
    /// Its links, the newest last.
    links: Vec<Present>,
    ways: watch::Sender<Vec<Way>>,
    answers: Answers,
    router: Arc<Router>,
}

impl Peer {
    fn named(&self, node: &str) -> PlainPeer {
        PlainPeer { node_id: node.to_owned(), name: self.name.clone() }
    }

    /// Tells the circuits which links there are now.
    fn links_changed(&self) {
        let way = |link: &Present| Way { number: link.number, outbox: link.outbox.clone() };
        let open = self.links.iter().filter(|link| link.is_open.load(Ordering::Relaxed));
        self.ways.send_replace(open.map(way).collect());
    }
}

/// A link to a plain peer, as circuits use it.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) number: u64,
    pub(crate) outbox: Outbox,
}

#[derive(Clone)]
struct Present {
    number: u64,
    outbox: Outbox,
    is_silent: Arc<AtomicBool>,
    /// Whether circuits may use it.
    is_open: Arc<AtomicBool>,
    closing: CancellationToken,
}

/// The registration of a link, which ends when this is dropped.
pub(crate) struct Linked {
    peers: Arc<PlainPeers>,
    node: String,
    present: Present,
}

impl Linked {
    /// Cancelled when the link must end.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.present.closing
    }

    /// Lets circuits use the link, once the peer has got the first snapshot.
    pub(crate) fn open(&self) {
        self.present.is_open.store(true, Ordering::Relaxed);
        if let Some(peer) = self.peers.lock().get(&self.node) {
            peer.links_changed();
        }
    }

    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.present.is_silent.store(is_silent, Ordering::Relaxed);
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        if let Some(peer) = self.peers.lock().get_mut(&self.node) {
            peer.links.retain(|link| link.number != self.present.number);
            peer.links_changed();
        }
    }
}

impl PlainPeers {
    /// Registers a link to a plain peer.
    ///
    /// # Errors
    /// Words for the peer, if there are too many peers or links.
    pub(crate) fn link(
        self: &Arc<Self>,
        node: &str,
        name: Option<String>,
        outbox: &Outbox,
    ) -> Result<Linked, String> {
        let present = Present {
            number: self.next.fetch_add(1, Ordering::Relaxed),
            outbox: outbox.clone(),
            is_silent: Arc::default(),
            is_open: Arc::default(),
            closing: CancellationToken::new(),
        };
        let mut peers = self.lock();
        make_room(&mut peers, node)?;
        let peer = peers.entry(node.to_owned()).or_default();
        if peer.links.len() >= MOST_LINKS {
            return Err(format!("node {node} has {MOST_LINKS} links already"));
        }
        peer.name = name.unwrap_or_default();
        peer.links.push(present.clone());
        drop(peers);
        Ok(Linked { peers: Arc::clone(self), node: node.to_owned(), present })
    }

    /// Whether a link leads to a plain peer.
    pub(crate) fn is_linked(&self, node: &str) -> bool {
        self.lock().get(node).is_some_and(|peer| !peer.links.is_empty())
    }

    /// Whether a link leads to a plain peer and gives signs of life.
    pub(crate) fn is_alive(&self, node: &str) -> bool {
        let is_alive =
            |link: &Present| !link.is_silent.load(Ordering::Relaxed) && !link.outbox.is_closed();
        self.lock().get(node).is_some_and(|peer| peer.links.iter().any(is_alive))
    }

    /// The plain peers that are linked, or were since the start.
    pub(crate) fn list(&self) -> Vec<PlainPeer> {
        self.lock().iter().map(|(node, peer)| peer.named(node)).collect()
    }

    /// The linked plain peers that are shown to other members.
    pub(crate) fn linked(&self) -> Vec<PlainPeer> {
        let peers = self.lock();
        let linked = peers.iter().filter(|(_, peer)| !peer.links.is_empty());
        linked.map(|(node, peer)| peer.named(node)).take(MOST_SHOWN).collect()
    }

    /// The name of a plain peer.
    pub(crate) fn name(&self, node: &str) -> Option<String> {
        self.lock().get(node).map(|peer| peer.name.clone())
    }

    /// Notes a plain peer's new name.
    pub(crate) fn rename(&self, node: &str, name: String) {
        if let Some(peer) = self.lock().get_mut(node) {
            peer.name = name;
        }
    }

    /// The outbox of the newest link to a plain peer.
    pub(crate) fn outbox(&self, node: &str) -> Option<Outbox> {
        Some(self.lock().get(node)?.links.last()?.outbox.clone())
    }

    /// Calls `look` with the answers to a plain peer's requests. For an unknown peer it returns the
    /// default.
    pub(crate) fn answers<T: Default>(
        &self,
        node: &str,
        look: impl FnOnce(&mut Answers) -> T,
    ) -> T {
        self.lock().get_mut(node).map(|peer| look(&mut peer.answers)).unwrap_or_default()
    }

    /// The router of a plain peer, and its links, for a circuit that ends there. `None` if there
    /// are too many peers.
    pub(crate) fn circuits(&self, node: &str) -> Option<(Arc<Router>, watch::Receiver<Vec<Way>>)> {
        let mut peers = self.lock();
        make_room(&mut peers, node).ok()?;
        let peer = peers.entry(node.to_owned()).or_default();
        Some((Arc::clone(&peer.router), peer.ways.subscribe()))
    }

    /// The router of a plain peer.
    pub(crate) fn router(&self, node: &str) -> Option<Arc<Router>> {
        Some(Arc::clone(&self.lock().get(node)?.router))
    }

    /// The bytes that wait for all of them.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        let peers = self.lock();
        let links = peers.values().flat_map(|peer| &peer.links);
        links.map(|link| link.outbox.queued()).sum()
    }

    /// Ends all links.
    pub(crate) fn close(&self) {
        self.lock().values().flat_map(|peer| &peer.links).for_each(|link| link.closing.cancel());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for another plain peer, by forgetting one that is not linked and has no circuits.
fn make_room(peers: &mut BTreeMap<String, Peer>, node: &str) -> Result<(), String> {
    if peers.len() < MOST_PEERS || peers.contains_key(node) {
        return Ok(());
    }
    let is_unused = |peer: &Peer| peer.links.is_empty() && peer.ways.receiver_count() == 0;
    let unlinked = peers.iter().find(|(_, peer)| is_unused(peer));
    let unlinked = unlinked.map(|(node, _)| node.clone());
    let unlinked = unlinked.ok_or_else(|| "this machine has too many peers".to_owned())?;
    peers.remove(&unlinked);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(peers: &Arc<PlainPeers>, node: &str) -> Result<Linked, String> {
        let (outbox, reader) = Outbox::detached();
        // A reader that is dropped closes its outbox.
        std::mem::forget(reader);
        peers.link(node, Some(format!("name of {node}")), &outbox)
    }

    #[test]
    fn a_peer_is_there_until_its_last_link_ends_and_keeps_its_name() {
        let peers = Arc::<PlainPeers>::default();
        let (one, other) = (link(&peers, "a").unwrap(), link(&peers, "a").unwrap());
        one.set_silent(true);
        assert!(peers.is_alive("a"));
        drop(other);
        assert!(peers.is_linked("a") && !peers.is_alive("a"));
        drop(one);
        assert!(!peers.is_linked("a"));
        assert_eq!(peers.name("a").as_deref(), Some("name of a"));
    }

    #[test]
    fn peers_and_links_are_bounded() {
        let peers = Arc::<PlainPeers>::default();
        let links: Vec<_> = (0..MOST_LINKS).map(|_| link(&peers, "a").unwrap()).collect();
        assert!(link(&peers, "a").is_err());
        let others: Vec<_> = (1..MOST_PEERS).map(|n| link(&peers, &n.to_string())).collect();
        assert!(others.iter().all(Result::is_ok));
        assert!(link(&peers, "one more").is_err());
        drop(links);
        assert!(link(&peers, "one more").is_ok());
        assert_eq!(peers.list().len(), MOST_PEERS);
        assert_eq!(peers.linked().len(), MOST_SHOWN);
    }
}
