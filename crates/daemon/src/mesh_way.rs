//! The mesh as a way between members of a workspace cluster that cannot connect to each other.

use std::sync::{Arc, Weak};

use base::NodeId;
use bytes::Bytes;
use cluster::{Cluster, MeshWay, Sending};
use mesh::{Mesh, parcels::Receiver};

/// From the cluster to the mesh.
struct ToPeers(Mesh);

impl MeshWay for ToPeers {
    fn leads_to(&self, key: NodeId) -> bool {
        self.0.knows(key)
    }

    fn send(&self, key: NodeId, bytes: Bytes) -> Sending<'_> {
        Box::pin(async move {
            let sent = self.0.send(key, &bytes).await;
            sent.map_err(|error| base::error::chain(&error))
        })
    }
}

/// From the mesh to the cluster, as long as it is not dropped.
pub(crate) struct FromPeers(Cluster);

impl Receiver for FromPeers {
    fn received(&self, from: NodeId, bytes: Bytes) {
        self.0.received_over_mesh(from, bytes);
    }

    fn lost(&self, peer: NodeId) {
        self.0.mesh_lost(peer);
    }
}

/// Lets a member link to others over the mesh, as long as the outcome is not dropped.
pub(crate) fn open(mesh: &Mesh, cluster: &Cluster) -> Arc<FromPeers> {
    cluster.use_mesh(Arc::new(ToPeers(mesh.clone())));
    let from = Arc::new(FromPeers(cluster.clone()));
    let receiver: Weak<FromPeers> = Arc::downgrade(&from);
    mesh.set_receiver(receiver);
    from
}
