//! Questions that are answered with one message: whether a model is here, and its manifest.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use models::{Hashed, Offered};
use protocol::mesh::{
    ClusterMessage,
    cluster::{ManifestFile, ModelManifest, ModelManifestRequest, ModelQuery, ModelQueryResponse},
};

use super::{ModelServer, Outbound, refuse};
use crate::{
    link::Link,
    share::{Asker, Moment},
    transfer::{queries::carries_models, shared::Shared},
};

/// The most questions that are answered at a time.
const MAX_OPEN: usize = 256;

impl ModelServer {
    /// Answers whether a model is here.
    pub(in crate::transfer) fn query(self: &Arc<Self>, link: &Arc<Link>, query: ModelQuery) {
        let open = Open::new(&self.open);
        let refused = self.shared.may_have(link, &query.model_id).is_err();
        let Some(open) = open.filter(|_| !refused) else {
            self.shared.counts.refused.one();
            return answer(link, query.model_id, None);
        };
        let (serving, link) = (Arc::clone(self), Arc::clone(link));
        self.shared.machine.tasks.spawn(async move {
            let _open = open;
            let found = serving.shared.shelf.find(&query.model_id).await;
            answer(&link, query.model_id, found.map(|it| it.size()));
        });
    }

    /// Answers with a model's manifest, which begins a transfer.
    pub(in crate::transfer) fn manifest(
        self: &Arc<Self>,
        link: &Arc<Link>,
        request: ModelManifestRequest,
    ) {
        let ModelManifestRequest { transfer_id, model_id } = request;
        let begun = self.shared.may_have(link, &model_id);
        let begun = begun.and_then(|()| self.begin(link, &transfer_id, &model_id));
        let outbound = match begun {
            Ok(outbound) => outbound,
            Err(why) => {
                self.shared.counts.refused.one();
                return refuse(link, &transfer_id, &why);
            }
        };
        let (serving, link) = (Arc::clone(self), Arc::clone(link));
        self.shared.machine.tasks.spawn(async move {
            let sent = tokio::select! {
                sent = send_manifest(&serving.shared, &link, &outbound, &model_id) => sent,
                // Hashing goes on, and serves the next request.
                () = outbound.stop.cancelled() => return,
                () = link.closed() => return,
            };
            if let Err(why) = sent {
                serving.shared.counts.refused.one();
                serving.take(&link, &transfer_id);
                refuse(&link, &transfer_id, &why);
            }
        });
    }
}

impl Shared {
    /// Checks whether this model may be passed on over this link.
    ///
    /// # Errors
    /// Why it may not, in words for the peer.
    pub(super) fn may_have(&self, link: &Link, model: &str) -> Result<(), String> {
        if !self.machine.settings.share.models_offered || !self.machine.settings.share.offers(model)
        {
            return Err("this machine does not pass the model on".to_owned());
        }
        if !carries_models(link) {
            return Err("models pass over sealed links only".to_owned());
        }
        let asker = Asker { peer: &link.peer, proved: link.proved, sealed: link.sealed };
        self.machine.settings.share.lets_in(asker).map_err(|refusal| refusal.words)?;
        let paused = self.machine.settings.share.pauses(Moment::now(), self.machine.facts.load());
        paused.map_or(Ok(()), |refusal| Err(refusal.words))
    }

    /// The model with this name.
    ///
    /// # Errors
    /// In words, if the model is not here.
    pub(super) async fn offered(&self, model: &str) -> Result<Offered, String> {
        self.shelf.find(model).await.ok_or_else(|| "the model is not here".to_owned())
    }
}

fn answer(link: &Link, model_id: String, total_size_bytes: Option<u64>) {
    let available = total_size_bytes.is_some();
    let response = ModelQueryResponse { model_id, available, total_size_bytes };
    // If the link is closed, its own task notices.
    let _ = link.tell(&ClusterMessage::ModelQueryResponse(response));
}

async fn send_manifest(
    shared: &Shared,
    link: &Link,
    outbound: &Outbound,
    model: &str,
) -> Result<(), String> {
    let offered = shared.offered(model).await?;
    let hashed = shared.shelf.hashed(offered).await?;
    let manifest = manifest(outbound, &hashed);
    outbound.set_total(hashed.manifest.total());
    // This is the only call for a transfer, so it never fails.
    let _ = outbound.hashed.set(hashed);
    let sent = link.say(&ClusterMessage::ModelManifest(manifest)).await;
    sent.map_err(|error| error.to_string())
}

fn manifest(outbound: &Outbound, hashed: &Hashed) -> ModelManifest {
    let file = |file: &models::ManifestFile| ManifestFile {
        name: file.name.to_string(),
        size: file.size,
        root: blake3::Hash::from_bytes(file.root).to_hex().to_string(),
    };
    ModelManifest {
        transfer_id: outbound.id.clone(),
        model_id: hashed.manifest.id().to_string(),
        files: hashed.manifest.files().iter().map(file).collect(),
    }
}

/// A question that is being answered.
struct Open(Arc<AtomicUsize>);

impl Open {
    /// `None` if too many are being answered.
    fn new(count: &Arc<AtomicUsize>) -> Option<Self> {
        let open = Self(Arc::clone(count));
        (count.fetch_add(1, Ordering::Relaxed) < MAX_OPEN).then_some(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
