//! Models that come and go.
//!
//! A pull fetches a model from every peer that has the same files; the serving side answers what pulls of
//! other machines ask for. Both also speak the plain form of stock peers.
//!
//! For the administration: `Transfers::list`, `Transfers::pull`, `Transfers::cancel`,
//! `Transfers::counts`, `Transfers::offered_here` and `Transfers::offered_by_peers`.
//!
//! - `home`: what they need of the node
//! - `shelf`: the models that are here
//! - `queries`: who has a model
//! - `pull`: models that are fetched
//! - `serve`: models that are passed on
//! - `rate`, `counts`: how fast, and how much

mod counts;
mod home;
mod pull;
mod queries;
mod rate;
mod serve;
mod shelf;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use models::Library;
use protocol::{
    admin::mesh::MeshTransfer,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ModelManifest, ModelTransferError, Piece},
    },
};
use tokio::sync::watch;

use self::{
    counts::Counters, home::Home, pull::Pulls, queries::Queries, serve::Serving, shelf::Shelf,
};
use crate::{link::Link, node::Node, peer::PeerId, settings::Settings, share::Share};

/// Where models arrive, below the data directory.
const STORE: &str = "models";

/// The most ended transfers that are remembered.
const MAX_ENDED: usize = 64;

/// The most models that peers are asked for at once, and the most peers.
const MAX_ASKED: (usize, usize) = (64, 256);

/// How long they may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Models that come and go.
pub struct Transfers(Arc<Inner>);

/// What all transfers have in common.
struct Inner {
    share: Share,
    shelf: Shelf,
    queries: Queries,
    pulls: Pulls,
    serving: Serving,
    counts: Counters,
    /// The newest last.
    ended: Mutex<VecDeque<MeshTransfer>>,
}

/// A caller's view of a model that is being fetched. Dropping it stops nothing.
#[derive(Debug, Clone)]
pub struct Pull(watch::Receiver<MeshTransfer>);

impl Pull {
    /// How it is now.
    pub fn now(&self) -> MeshTransfer {
        self.0.borrow().clone()
    }

    /// Waits for news, a few times a second at most; `None` after the last, whose state is `done`, `failed`
    /// or `cancelled`. Cancel safe.
    pub async fn next(&mut self) -> Option<MeshTransfer> {
        self.0.changed().await.ok()?;
        Some(self.0.borrow_and_update().clone())
    }
}

/// Why a pull does not even begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// The model cannot be called so.
    #[error("no model can be called so: {0}")]
    Name(#[from] models::NameError),
    /// As many as are allowed at once are running.
    #[error("{0} models are being fetched already: wait for one, or cancel it")]
    TooMany(usize),
    /// Nothing can be fetched: the folder for models cannot be used, or the server is stopping.
    #[error("{0}")]
    Unavailable(String),
}

/// What is counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Bytes of files that were fetched and were right.
    pub bytes_in: u64,
    /// Bytes of files that were sent.
    pub bytes_out: u64,
    /// Pieces and hash trees of peers that were wrong.
    pub corrupt: u64,
    /// Slices, chunks and answers that nobody had asked for.
    pub unasked: u64,
    /// Requests that were refused: not shared, not there, or too many.
    pub refused: u64,
    /// Pulls that ended well.
    pub done: u64,
    /// Pulls that failed.
    pub failed: u64,
}

/// A model that a peer passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOffer {
    /// Who.
    pub peer: PeerId,
    /// What.
    pub model: String,
    /// Its size, in bytes, as the peer tells.
    pub bytes: u64,
}

impl Transfers {
    pub(crate) fn new(settings: &Settings, library: Arc<Library>) -> Self {
        let store = settings.data_dir.join(STORE);
        // Of transfers in the plain form, which cannot go on.
        models::arrival::clear_stock(&store);
        Self(Arc::new(Inner::new(settings.share.clone(), library, store)))
    }

    /// All transfers that run, both ways, and the last ones that ended: the newest first.
    pub(crate) fn list(&self) -> Vec<MeshTransfer> {
        self.0.list()
    }

    /// Begins to fetch a model, or joins a running transfer. `from`: from this peer only.
    ///
    /// # Errors
    /// [`PullError`]. Everything that goes wrong later is told by the [`Pull`].
    pub(crate) fn pull(
        &self,
        node: &Arc<Node>,
        model: &str,
        from: Option<PeerId>,
    ) -> Result<Pull, PullError> {
        Pulls::pull(&self.0, home(node), model, from)
    }

    /// Stops the transfer of this id, either way; what has arrived stays for another pull. Whether there was
    /// one.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.0.cancel(id)
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> TransferCounts {
        self.0.counts.read()
    }

    /// The models whose files are here, by name, with their sizes in bytes, whether peers get them or not.
    pub(crate) async fn offered_here(&self) -> Vec<(String, u64)> {
        let all = self.0.shelf.all().await;
        all.iter().map(|offered| (offered.id.to_string(), offered.size())).collect()
    }

    /// Asks all linked peers which of these models they pass on: at most 64 names, within 3 s.
    pub(crate) async fn offered_by_peers(
        &self,
        node: &Arc<Node>,
        models: &[String],
    ) -> Vec<PeerOffer> {
        self.0.offered_by_peers(&home(node), models).await
    }

    /// A message about models.
    pub(crate) fn message(&self, node: &Arc<Node>, link: &Arc<Link>, message: ClusterMessage) {
        self.0.message(&home(node), link, message);
    }

    /// A slice of a piece, or of a hash tree.
    pub(crate) fn piece(&self, link: &Arc<Link>, piece: &Piece) {
        self.0.piece(link, piece);
    }

    /// The link's transfers continue over another link, or end.
    pub(crate) fn link_closed(&self, link: &Arc<Link>) {
        self.0.link_closed(link);
    }
}

fn home(node: &Arc<Node>) -> Arc<dyn Home> {
    Arc::new(Arc::clone(node))
}

impl Inner {
    fn new(share: Share, library: Arc<Library>, store: PathBuf) -> Self {
        Self {
            share,
            shelf: Shelf::new(library, store),
            queries: Queries::default(),
            pulls: Pulls::default(),
            serving: Serving::default(),
            counts: Counters::default(),
            ended: Mutex::default(),
        }
    }

    fn list(&self) -> Vec<MeshTransfer> {
        let pulls = self.pulls.list().into_iter().rev();
        let out = self.serving.list().into_iter().rev();
        let ended = self.lock_ended();
        pulls.chain(out).chain(ended.iter().rev().cloned()).collect()
    }

    fn cancel(&self, id: &str) -> bool {
        let id = WireId::from(id);
        self.pulls.cancel(&id) || self.serving.cancel(self, &id)
    }

    fn message(self: &Arc<Self>, home: &Arc<dyn Home>, link: &Arc<Link>, message: ClusterMessage) {
        use ClusterMessage as M;
        let asked = match message {
            M::ModelQuery(query) => return Serving::query(self, home, link, query),
            M::ModelTransferRequest(request) => return Serving::plain(self, home, link, request),
            M::ModelManifestRequest(request) if link.sealed => {
                return Serving::manifest(self, home, link, request);
            }
            M::ModelTreeRequest(request) => return Serving::tree(self, &**home, link, &request),
            M::ModelPieceRequest(request) => return Serving::pieces(self, &**home, link, &request),
            M::ModelQueryResponse(answer) => self.queries.answered(link, &answer),
            M::ModelManifest(manifest) => self.manifest(link, manifest),
            M::ModelTransferChunk(chunk) => self.pulls.chunk(link, &chunk),
            M::ModelTransferComplete(complete) => {
                self.pulls.complete(link, &complete)
                    || self.serving.complete(self, link, &complete.transfer_id)
            }
            M::ModelTransferError(error) => self.stopped(link, error),
            _ => false,
        };
        if !asked {
            self.counts.unasked.one();
        }
    }

    fn manifest(&self, link: &Link, manifest: ModelManifest) -> bool {
        link.sealed && self.pulls.manifest(link, manifest)
    }

    /// A transfer cannot go on, or is not wanted any more.
    fn stopped(&self, link: &Link, error: ModelTransferError) -> bool {
        let ModelTransferError { transfer_id, error_message } = error;
        let unwanted = self.serving.unwanted(self, link, &transfer_id);
        self.pulls.refused(link, &transfer_id, &error_message) || unwanted
    }

    fn piece(&self, link: &Arc<Link>, piece: &Piece) {
        if !self.pulls.slice(link, piece) {
            self.counts.unasked.one();
        }
    }

    fn link_closed(&self, link: &Link) {
        self.queries.link_closed(link);
        self.pulls.link_closed(link);
        self.serving.link_closed(self, link);
    }

    async fn offered_by_peers(&self, home: &Arc<dyn Home>, models: &[String]) -> Vec<PeerOffer> {
        let (names, peers) = MAX_ASKED;
        let links = home.peers().into_iter().filter_map(|peer| peer.link());
        let may_ask = |link: &Arc<Link>| queries::carries_models(link) && home.may_ask_over(link);
        let links: Vec<_> = links.filter(may_ask).take(peers).collect();
        let each =
            links.iter().flat_map(|link| models.iter().take(names).map(move |it| (link, it)));
        let ask = async |(link, model): (&Arc<Link>, &String)| {
            let bytes = self.queries.ask(link, model, ANSWER_WITHIN).await?;
            Some(PeerOffer { peer: link.peer.clone(), model: model.clone(), bytes })
        };
        let asked: Vec<_> = each.map(ask).collect();
        let mut asked = stream::iter(asked).buffer_unordered(names * peers);
        let mut offers = Vec::new();
        while let Some(offer) = asked.next().await {
            offers.extend(offer);
        }
        offers.sort_by(|a: &PeerOffer, b| (&a.model, &a.peer).cmp(&(&b.model, &b.peer)));
        offers
    }

    /// A transfer is over.
    fn ended(&self, transfer: MeshTransfer) {
        let mut ended = self.lock_ended();
        if ended.len() >= MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(transfer);
    }

    fn lock_ended(&self) -> MutexGuard<'_, VecDeque<MeshTransfer>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
