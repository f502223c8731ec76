//! Models that are fetched from peers, and sent to them.
//!
//! A pull fetches a model from all peers that have the same files. The serving side answers the
//! pulls of other machines. Both sides also speak the plain form of stock peers.
//!
//! - `pull`: models that are fetched
//! - `serve`: models that are passed on
//! - `shared`: the state that both sides share, and their counts
//! - `shelf`: the models that are here
//! - `queries`: questions to peers whether they have a model
//! - `rate`: how fast bytes come or go

mod pull;
mod queries;
mod rate;
mod serve;
mod shared;
mod shelf;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use models::Library;
use protocol::{
    admin::mesh::MeshTransfer,
    mesh::{
        ClusterMessage, WireId,
        cluster::{ModelTransferError, Piece},
    },
};

use self::{pull::Pulls, serve::ModelServer, shared::Shared};
pub use self::{
    pull::{Pull, PullError},
    shared::TransferCounts,
};
use crate::{
    link::Link,
    peer::{PeerId, Peers},
    this_machine::ThisMachine,
    wan::Wan,
};

/// The directory below the data directory in which models arrive.
const STORE: &str = "models";

/// The most models about which peers are asked, and the most peers that are asked.
const MAX_ASKED: (usize, usize) = (64, 256);

/// How long the peers may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The transfers of models, in both directions.
pub struct Transfers {
    shared: Arc<Shared>,
    pulls: Arc<Pulls>,
    serving: Arc<ModelServer>,
}

/// A model that a peer passes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOffer {
    /// The peer.
    pub peer: PeerId,
    /// The name of the model.
    pub model: String,
    /// Its size in bytes, as the peer says.
    pub bytes: u64,
}

impl Transfers {
    pub(crate) fn new(
        machine: Arc<ThisMachine>,
        peers: Arc<Peers>,
        wan: Arc<Wan>,
        library: Arc<Library>,
    ) -> Self {
        let store = machine.settings.data_dir.join(STORE);
        // Removes what is left of transfers in the plain form, which cannot be resumed.
        models::arrival::clear_stock(&store);
        let shared = Arc::new(Shared::new(machine, peers, wan, library, store));
        let pulls = Arc::new(Pulls::new(Arc::clone(&shared)));
        let serving = Arc::new(ModelServer::new(Arc::clone(&shared)));
        Self { shared, pulls, serving }
    }

    /// All running transfers, in both directions, and the last ones that ended; the newest first.
    pub(crate) fn list(&self) -> Vec<MeshTransfer> {
        let pulls = self.pulls.list().into_iter().rev();
        let out = self.serving.list().into_iter().rev();
        pulls.chain(out).chain(self.shared.all_ended()).collect()
    }

    /// Begins to fetch a model, or joins a running pull of it. With `from` it is fetched from that
    /// peer only.
    ///
    /// # Errors
    /// [`PullError`]. Later failures are reported by the [`Pull`].
    pub(crate) fn pull(&self, model: &str, from: Option<PeerId>) -> Result<Pull, PullError> {
        self.pulls.pull(model, from)
    }

    /// Stops the transfer with this id, in either direction. What has arrived is kept for another
    /// pull. Returns whether there was such a transfer.
    pub(crate) fn cancel(&self, id: &str) -> bool {
        let id = WireId::from(id);
        self.pulls.cancel(&id) || self.serving.cancel(&id)
    }

    pub(crate) fn counts(&self) -> TransferCounts {
        self.shared.counts.read()
    }

    /// The models whose files are here, and their sizes in bytes, including models that peers do
    /// not get.
    pub(crate) async fn offered_here(&self) -> Vec<(String, u64)> {
        let all = self.shared.shelf.all().await;
        all.iter().map(|offered| (offered.id.to_string(), offered.size())).collect()
    }

    /// Asks all linked peers which of these models they pass on: at most 64 names, within 3 s.
    pub(crate) async fn offered_by_peers(&self, models: &[String]) -> Vec<PeerOffer> {
        let Shared { machine, peers, queries, .. } = &*self.shared;
        let (max_names, max_peers) = MAX_ASKED;
        let links = peers.all().into_iter().filter_map(|peer| peer.link());
        let may_ask =
            |link: &Arc<Link>| queries::carries_models(link) && machine.may_ask_over(link);
        let links: Vec<_> = links.filter(may_ask).take(max_peers).collect();
        let each =
            links.iter().flat_map(|link| models.iter().take(max_names).map(move |it| (link, it)));
        let ask = async |(link, model): (&Arc<Link>, &String)| {
            let bytes = queries.ask(link, model, ANSWER_WITHIN).await?;
            Some(PeerOffer { peer: link.peer.clone(), model: model.clone(), bytes })
        };
        let questions: Vec<_> = each.map(ask).collect();
        let mut answers = stream::iter(questions).buffer_unordered(max_names * max_peers);
        let mut offers = Vec::new();
        while let Some(offer) = answers.next().await {
            offers.extend(offer);
        }
        offers.sort_by(|a: &PeerOffer, b| (&a.model, &a.peer).cmp(&(&b.model, &b.peer)));
        offers
    }

    /// Handles a message about models.
    pub(crate) fn message(&self, link: &Arc<Link>, message: ClusterMessage) {
        use ClusterMessage as M;
        let is_expected = match message {
            M::ModelQuery(query) => return self.serving.query(link, query),
            M::ModelTransferRequest(request) => return self.serving.plain(link, request),
            M::ModelManifestRequest(request) if link.sealed => {
                return self.serving.manifest(link, request);
            }
            M::ModelTreeRequest(request) => return self.serving.tree(link, &request),
            M::ModelPieceRequest(request) => return self.serving.pieces(link, &request),
            M::ModelQueryResponse(answer) => self.shared.queries.answered(link, &answer),
            M::ModelManifest(manifest) => link.sealed && self.pulls.manifest(link, manifest),
            M::ModelTransferChunk(chunk) => self.pulls.chunk(link, &chunk),
            M::ModelTransferComplete(complete) => {
                self.pulls.complete(link, &complete)
                    || self.serving.complete(link, &complete.transfer_id)
            }
            M::ModelTransferError(error) => self.stopped(link, error),
            _ => false,
        };
        if !is_expected {
            self.shared.counts.unasked.one();
        }
    }

    /// Handles a slice of a piece, or of a hash tree.
    pub(crate) fn piece(&self, link: &Arc<Link>, piece: &Piece) {
        if !self.pulls.slice(link, piece) {
            self.shared.counts.unasked.one();
        }
    }

    /// Handles the end of a link. Pulls go on over other links; transfers to the link's peer end.
    pub(crate) fn link_closed(&self, link: &Arc<Link>) {
        self.shared.queries.link_closed(link);
        self.pulls.link_closed(link);
        self.serving.link_closed(link);
    }

    /// Handles the message that a transfer cannot go on, or is no longer wanted. The message does
    /// not say which, so both sides look for its id.
    fn stopped(&self, link: &Link, error: ModelTransferError) -> bool {
        let ModelTransferError { transfer_id, error_message } = error;
        let unwanted = self.serving.unwanted(link, &transfer_id);
        self.pulls.refused(link, &transfer_id, &error_message) || unwanted
    }
}
