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
//! - `queries`: which peer has a model
//! - `pull`: models that are fetched
//! - `serve`: models that are passed on
//! - `commons`: the state that both share
//! - `rate`, `counts`: how fast, and how much

mod commons;
mod counts;
mod home;
mod pull;
mod queries;
mod rate;
mod serve;
mod shelf;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use models::Library;
use protocol::{
    admin::mesh::MeshTransfer,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ModelManifest, ModelTransferError, Piece},
    },
};

pub(crate) use self::home::Home;
use self::{commons::Commons, pull::Pulls, serve::Serving};
pub use self::{
    counts::TransferCounts,
    pull::{Pull, PullError},
};
use crate::{link::Link, peer::PeerId, settings::Settings, share::Share};

/// Where models arrive, below the data directory.
const STORE: &str = "models";

/// The most models that peers are asked for at once, and the most peers.
const MAX_ASKED: (usize, usize) = (64, 256);

/// How long they may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Models that come and go.
pub struct Transfers(Arc<Inner>);

struct Inner {
    commons: Arc<Commons>,
    pulls: Arc<Pulls>,
    serving: Arc<Serving>,
}

/// A model that a peer passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOffer {
    /// Its peer.
    pub peer: PeerId,
    /// Its model.
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
    /// [`PullError`]. The [`Pull`] reports everything that goes wrong later.
    pub(crate) fn pull(
        &self,
        home: &Arc<dyn Home>,
        model: &str,
        from: Option<PeerId>,
    ) -> Result<Pull, PullError> {
        self.0.pulls.pull(Arc::clone(home), model, from)
    }

    /// Stops the transfer of this id, either way; what has arrived stays for another pull. Whether there was
    /// one.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        self.0.cancel(id)
    }

    pub(crate) fn counts(&self) -> TransferCounts {
        self.0.commons.counts.read()
    }

    /// The models whose files are here, by name, with their sizes in bytes, whether peers get them or not.
    pub(crate) async fn offered_here(&self) -> Vec<(String, u64)> {
        let all = self.0.commons.shelf.all().await;
        all.iter().map(|offered| (offered.id.to_string(), offered.size())).collect()
    }

    /// Asks all linked peers which of these models they pass on: at most 64 names, within 3 s.
    pub(crate) async fn offered_by_peers(
        &self,
        home: &Arc<dyn Home>,
        models: &[String],
    ) -> Vec<PeerOffer> {
        self.0.offered_by_peers(home, models).await
    }

    /// A message about models.
    pub(crate) fn message(&self, home: &Arc<dyn Home>, link: &Arc<Link>, message: ClusterMessage) {
        self.0.message(home, link, message);
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

impl Inner {
    fn new(share: Share, library: Arc<Library>, store: PathBuf) -> Self {
        let commons = Arc::new(Commons::new(share, library, store));
        let pulls = Arc::new(Pulls::new(Arc::clone(&commons)));
        let serving = Arc::new(Serving::new(Arc::clone(&commons)));
        Self { commons, pulls, serving }
    }

    fn list(&self) -> Vec<MeshTransfer> {
        let pulls = self.pulls.list().into_iter().rev();
        let out = self.serving.list().into_iter().rev();
        pulls.chain(out).chain(self.commons.all_ended()).collect()
    }

    fn cancel(&self, id: &str) -> bool {
        let id = WireId::from(id);
        self.pulls.cancel(&id) || self.serving.cancel(&id)
    }

    fn message(&self, home: &Arc<dyn Home>, link: &Arc<Link>, message: ClusterMessage) {
        use ClusterMessage as M;
        let asked = match message {
            M::ModelQuery(query) => return self.serving.query(home, link, query),
            M::ModelTransferRequest(request) => return self.serving.plain(home, link, request),
            M::ModelManifestRequest(request) if link.sealed => {
                return self.serving.manifest(home, link, request);
            }
            M::ModelTreeRequest(request) => return self.serving.tree(&**home, link, &request),
            M::ModelPieceRequest(request) => return self.serving.pieces(&**home, link, &request),
            M::ModelQueryResponse(answer) => self.commons.queries.answered(link, &answer),
            M::ModelManifest(manifest) => self.manifest(link, manifest),
            M::ModelTransferChunk(chunk) => self.pulls.chunk(link, &chunk),
            M::ModelTransferComplete(complete) => {
                self.pulls.complete(link, &complete)
                    || self.serving.complete(link, &complete.transfer_id)
            }
            M::ModelTransferError(error) => self.stopped(link, error),
            _ => false,
        };
        if !asked {
            self.commons.counts.unasked.one();
        }
    }

    fn manifest(&self, link: &Link, manifest: ModelManifest) -> bool {
        link.sealed && self.pulls.manifest(link, manifest)
    }

    /// A transfer cannot go on, or is not wanted any more.
    fn stopped(&self, link: &Link, error: ModelTransferError) -> bool {
        let ModelTransferError { transfer_id, error_message } = error;
        let unwanted = self.serving.unwanted(link, &transfer_id);
        self.pulls.refused(link, &transfer_id, &error_message) || unwanted
    }

    fn piece(&self, link: &Arc<Link>, piece: &Piece) {
        if !self.pulls.slice(link, piece) {
            self.commons.counts.unasked.one();
        }
    }

    fn link_closed(&self, link: &Link) {
        self.commons.queries.link_closed(link);
        self.pulls.link_closed(link);
        self.serving.link_closed(link);
    }

    async fn offered_by_peers(&self, home: &Arc<dyn Home>, models: &[String]) -> Vec<PeerOffer> {
        let (names, peers) = MAX_ASKED;
        let links = home.peers().into_iter().filter_map(|peer| peer.link());
        let may_ask = |link: &Arc<Link>| queries::carries_models(link) && home.may_ask_over(link);
        let links: Vec<_> = links.filter(may_ask).take(peers).collect();
        let each =
            links.iter().flat_map(|link| models.iter().take(names).map(move |it| (link, it)));
        let ask = async |(link, model): (&Arc<Link>, &String)| {
            let bytes = self.commons.queries.ask(link, model, ANSWER_WITHIN).await?;
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
}
