//! The models of the mesh.

use std::collections::BTreeMap;

use base::Scope;
use protocol::{
    admin::mesh::{MeshModel, MeshModels},
    mesh::cluster::ListedModel,
};
use scheduler::Distance;

use crate::{Mesh, catalog, peer::PeerId, transfer::PeerOffer};

/// The most model names about which peers are asked one by one.
const MAX_ASKED: usize = 64;

impl Mesh {
    /// All models that are served or passed on, here or by a peer. Asking the peers takes at most 3
    /// s.
    pub async fn models(&self) -> MeshModels {
        let node = &self.0;
        let mut found = ModelsByName::default();
        for peer in node.peers.all() {
            for model in peer.facts().models {
                found.model(&model).served_by.push(peer.id.to_string());
            }
        }
        self.serve_here(&mut found);
        let names: Vec<String> = found.0.keys().take(MAX_ASKED).cloned().collect();
        let (here, listed, offers) = tokio::join!(
            node.transfers.offered_here(),
            catalog::ask_all(&node.catalog, &node.peers),
            node.transfers.offered_by_peers(&names),
        );
        found.here(here);
        found.listed(listed);
        found.offers(offers);
        MeshModels { models: found.0.into_values().collect() }
    }

    fn serve_here(&self, found: &mut ModelsByName) {
        for worker in self.0.scheduler.status().workers {
            if worker.distance != Distance::Here || worker.scope != Scope::server() {
                continue;
            }
            for model in worker.models.iter().filter(|model| !model.is_wildcard()) {
                found.model(model.as_str()).served_here = true;
            }
        }
    }
}

#[derive(Default)]
struct ModelsByName(BTreeMap<String, MeshModel>);

impl ModelsByName {
    fn model(&mut self, id: &str) -> &mut MeshModel {
        let new = || MeshModel { id: id.to_owned(), ..MeshModel::default() };
        self.0.entry(id.to_owned()).or_insert_with(new)
    }

    fn here(&mut self, models: Vec<(String, u64)>) {
        for (id, bytes) in models {
            let model = self.model(&id);
            (model.files_here, model.bytes) = (true, Some(bytes));
        }
    }

    fn listed(&mut self, lists: Vec<(PeerId, Vec<ListedModel>)>) {
        for (peer, models) in lists {
            for listed in models {
                self.offered(&listed.model_id, &peer, listed.total_size_bytes);
            }
        }
    }

    fn offers(&mut self, offers: Vec<PeerOffer>) {
        for offer in offers {
            self.offered(&offer.model, &offer.peer, offer.bytes);
        }
    }

    fn offered(&mut self, id: &str, by: &PeerId, bytes: u64) {
        let (model, by) = (self.model(id), by.to_string());
        model.bytes.get_or_insert(bytes);
        if !model.offered_by.contains(&by) {
            model.offered_by.push(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_listed_once_with_all_who_have_it() {
        let mut found = ModelsByName::default();
        let peer = |byte: u8| PeerId::Node(base::NodeId::new([byte; 32]));
        let listed =
            |id: &str, bytes| ListedModel { model_id: id.to_owned(), total_size_bytes: bytes };
        found.listed(vec![(peer(1), vec![listed("b", 7), listed("a", 5)])]);
        let offer = |byte| PeerOffer { peer: peer(byte), model: "b".to_owned(), bytes: 7 };
        found.offers(vec![offer(1), offer(2)]);
        found.here(vec![("c".to_owned(), 9)]);
        found.model("b").served_here = true;
        let [a, b, c] = &found.0.into_values().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!((a.id.as_str(), a.bytes, a.offered_by.len()), ("a", Some(5), 1));
        assert_eq!((b.offered_by.len(), b.served_here, b.files_here), (2, true, false));
        assert_eq!((c.bytes, c.files_here), (Some(9), true));
    }
}
