//! Finds the peers that have a model. It asks every linked peer that may be asked, and the Warrens
//! that a mesh relay lists.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use models::{FileName, Manifest, ManifestFile};
use protocol::mesh::{
    ClusterMessage,
    cluster::{ModelManifest, ModelManifestRequest},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::Job;
use crate::{
    link::Link,
    peer::{Peer, PeerId},
    transfer::{queries::carries_models, shared::Shared},
};

/// The most peers that are asked at a time.
const AT_ONCE: usize = 16;

/// The most peers without a link that are asked in one round.
const MAX_REACHED: usize = 64;

/// The time limit for linking to a peer, and again for its answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The time limit for the manifest. It is long, since the peer may have to read and hash the whole
/// model.
const LISTS_WITHIN: Duration = Duration::from_secs(600);

/// The time until a peer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// A peer that has the model.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The link to it.
    pub(super) link: Arc<Link>,
    /// The form in which it sends the model.
    pub(super) form: ModelForm,
}

/// The form in which a peer sends a model.
#[derive(Debug, Clone)]
pub(super) enum ModelForm {
    /// In pieces, with these files.
    Pieces(Arc<Manifest>),
    /// In the plain form, with this many bytes.
    Plain(u64),
}

/// The answer of a peer.
struct Answer {
    peer: PeerId,
    found: Option<Source>,
}

/// Asks peers, round after round.
pub(super) struct Finder {
    shared: Arc<Shared>,
    job: Arc<Job>,
    /// When each peer was last asked, and over which link.
    last_asked: HashMap<PeerId, (Option<u64>, Instant)>,
    questions: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// The peers that have not answered yet.
    open: HashSet<PeerId>,
    banned: HashSet<PeerId>,
    room: Arc<Semaphore>,
    /// How many peers are hashing the model.
    hashing: Arc<AtomicUsize>,
}

impl Finder {
    pub(super) fn new(shared: Arc<Shared>, job: Arc<Job>) -> Self {
        Self {
            shared,
            job,
            last_asked: HashMap::new(),
            questions: FuturesUnordered::new(),
            open: HashSet::new(),
            banned: HashSet::new(),
            room: Arc::new(Semaphore::new(AT_ONCE)),
            hashing: Arc::default(),
        }
    }

    /// Begins a round: asks all peers that were not asked lately, except those for which `has` is
    /// true.
    pub(super) fn ask_all(&mut self, has: impl Fn(&PeerId, Option<u64>) -> bool) {
        let mut peers = self.shared.peers.all();
        peers.retain(|peer| self.shared.machine.may_ask(peer));
        let (linked, unlinked): (Vec<_>, Vec<_>) =
            peers.into_iter().partition(|peer| peer.link().is_some());
        let mut unlinked: Vec<_> =
            unlinked.into_iter().filter(|peer| self.can_reach(peer)).collect();
        // Peers that announce the model come first, since each new link has a cost.
        unlinked.sort_by_key(|peer| !peer.facts().models.iter().any(|it| self.job.is_model(it)));
        for peer in linked.into_iter().chain(unlinked.into_iter().take(MAX_REACHED)) {
            let link = peer.link().map(|link| link.number);
            if self.is_due(&peer.id, link) && !has(&peer.id, link) {
                self.ask(peer, link);
            }
        }
    }

    /// Waits for the next peer that has the model. Waits for ever if no peer is being asked. Cancel
    /// safe.
    pub(super) async fn next(&mut self) -> Source {
        while let Some(answer) = self.questions.next().await {
            self.open.remove(&answer.peer);
            if let Some(found) = answer.found.filter(|_| !self.banned.contains(&answer.peer)) {
                return found;
            }
        }
        std::future::pending().await
    }

    /// Whether no peer is being asked.
    pub(super) fn is_idle(&self) -> bool {
        self.questions.is_empty()
    }

    /// Whether some peer has the model, and is hashing it.
    pub(super) fn waits_for_hashes(&self) -> bool {
        self.hashing.load(Ordering::Relaxed) > 0
    }

    /// Whether this peer is known and must not be asked.
    pub(super) fn is_barred(&self, id: &PeerId) -> bool {
        self.shared.peers.get(id).is_some_and(|peer| !self.shared.machine.may_ask(&peer))
    }

    /// Excludes a peer that has sent wrong bytes: it is not asked again.
    pub(super) fn ban(&mut self, peer: &PeerId) {
        self.banned.insert(peer.clone());
    }

    fn is_due(&self, peer: &PeerId, link: Option<u64>) -> bool {
        let is_wanted = self.job.from.as_ref().is_none_or(|from| from == peer);
        let last = self.last_asked.get(peer);
        let lately = last.is_some_and(|(over, at)| *over == link && at.elapsed() < ASK_AGAIN);
        is_wanted && !lately && !self.open.contains(peer) && !self.banned.contains(peer)
    }

    fn can_reach(&self, peer: &Peer) -> bool {
        self.is_due(&peer.id, None) && !peer.relays().is_empty() && peer.facts().warren.is_some()
    }

    fn ask(&mut self, peer: Arc<Peer>, link: Option<u64>) {
        self.last_asked.insert(peer.id.clone(), (link, Instant::now()));
        self.open.insert(peer.id.clone());
        let question = Question {
            shared: Arc::clone(&self.shared),
            job: Arc::clone(&self.job),
            room: Arc::clone(&self.room),
            hashing: Arc::clone(&self.hashing),
        };
        let id = peer.id.clone();
        let found = async move { Answer { peer: id, found: question.ask(peer).await } };
        self.questions.push(found.boxed());
    }
}

/// The question to one peer.
struct Question {
    shared: Arc<Shared>,
    job: Arc<Job>,
    room: Arc<Semaphore>,
    hashing: Arc<AtomicUsize>,
}

impl Question {
    async fn ask(self, peer: Arc<Peer>) -> Option<Source> {
        let room = Arc::clone(&self.room);
        let permit = room.acquire().await.ok()?;
        let link = match peer.link() {
            Some(link) => link,
            None => timeout(ANSWERS_WITHIN, self.shared.wan.reach(&peer)).await.ok()?.ok()?,
        };
        if !carries_models(&link) || !self.shared.machine.may_ask_over(&link) {
            return None;
        }
        let model = self.job.model.as_str();
        let size = self.shared.queries.ask(&link, model, ANSWERS_WITHIN).await?;
        // Hashing may take minutes, so other peers can be asked meanwhile.
        drop(permit);
        let form = if link.warren && link.sealed {
            ModelForm::Pieces(Arc::new(self.manifest(&link).await?))
        } else {
            ModelForm::Plain(size)
        };
        Some(Source { link, form })
    }

    async fn manifest(&self, link: &Arc<Link>) -> Option<Manifest> {
        let answer = self.job.inbox.next_manifest(link);
        let _hashing = CountGuard::new(&self.hashing);
        link.tell(&ClusterMessage::ModelManifestRequest(ModelManifestRequest {
            transfer_id: self.job.id.clone(),
            model_id: self.job.model.to_string(),
        }))
        .ok()?;
        let answer = tokio::select! {
            answer = timeout(LISTS_WITHIN, answer) => answer.ok()?.ok()?,
            () = link.closed() => return None,
        };
        let checked = answer.and_then(|manifest| self.checked(manifest));
        let peer = link.peer.short();
        let model = &self.job.model;
        checked
            .inspect_err(|why| tracing::warn!(peer, %model, why, "a peer does not tell its files"))
            .ok()
    }

    fn checked(&self, manifest: ModelManifest) -> Result<Manifest, String> {
        if !self.job.is_model(&manifest.model_id) {
            return Err("its manifest is of another model".to_owned());
        }
        let files = manifest.files.into_iter().map(file).collect::<Result<_, _>>()?;
        Manifest::new(self.job.model.clone(), files).map_err(|error| error.to_string())
    }
}

fn file(listed: protocol::mesh::cluster::ManifestFile) -> Result<ManifestFile, String> {
    let name = FileName::try_from(listed.name).map_err(|error| error.to_string())?;
    let root = blake3::Hash::from_hex(&listed.root);
    let root = root.map_err(|_| format!("the hash of {name} is none"))?;
    Ok(ManifestFile { name, size: listed.size, root: root.into() })
}

/// Adds one to a count until it is dropped.
struct CountGuard<'a>(&'a AtomicUsize);

impl<'a> CountGuard<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
