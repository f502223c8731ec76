//! The requests about a server's part in the mesh.

use std::time::Duration;

use base::Secret;
use http::Method;
use protocol::{
    admin::mesh::{
        MeshId, MeshModel, MeshModels, MeshPeers, MeshPull, MeshTransfer, MeshTransfers,
    },
    headers::ROUTE,
};
use serde::Deserialize;

use crate::{
    error::ClientError,
    lines::JsonLines,
    server::{Warren, segment},
};

/// The longest silence of a pull, which waits up to ten minutes for peers to come back.
const PULLING: Duration = Duration::from_secs(15 * 60);

impl Warren {
    /// The server's identity in the mesh.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses. It refuses when it takes no part in the mesh.
    pub async fn mesh_id(&self) -> Result<MeshId, ClientError> {
        self.get("/admin/mesh/id").await
    }

    /// Its peers, in the order of their ids, and those that it could not link to.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_peers(&self) -> Result<MeshPeers, ClientError> {
        self.get("/admin/mesh/peers").await
    }

    /// The models of the mesh, by name.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_models(&self) -> Result<Vec<MeshModel>, ClientError> {
        let list: MeshModels = self.get("/admin/mesh/models").await?;
        Ok(list.models)
    }

    /// The running transfers of models and those that ended last, the newest first.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`].
    pub async fn mesh_transfers(&self) -> Result<Vec<MeshTransfer>, ClientError> {
        let list: MeshTransfers = self.get("/admin/mesh/transfers").await?;
        Ok(list.transfers)
    }

    /// Stops a transfer, by its id. What has arrived stays for another pull.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`]; [`ClientError::NotFound`] when no such transfer runs.
    pub async fn cancel_mesh_transfer(&self, id: &str) -> Result<MeshTransfer, ClientError> {
        self.ask(Method::DELETE, &format!("/admin/mesh/transfers/{}", segment(id)), None).await
    }

    /// Makes the server fetch a model from its peers, or follows the transfer if the server fetches it already.
    /// Dropping the answer does not stop the transfer.
    ///
    /// # Errors
    /// As [`Warren::mesh_id`]; [`ClientError::NotFound`] when there is no such peer.
    pub async fn mesh_pull(&self, pull: &MeshPull) -> Result<TransferReports, ClientError> {
        self.post_for_lines("/admin/mesh/pull", pull, PULLING).await
    }

    /// The names of the models that the server can answer for, by itself or through others.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn model_ids(&self) -> Result<Vec<String>, ClientError> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
        }
        let list: List = self.get("/v1/models").await?;
        Ok(list.data.into_iter().map(|model| model.id).collect())
    }

    /// The same server, with this route for each request: `local-only`, `prefer-local` or `mesh`.
    ///
    /// # Errors
    /// When `route` cannot be sent in a header.
    pub fn routed(&self, route: &str) -> Result<Self, ClientError> {
        self.0.with_header(ROUTE, &Secret::from(route)).map(Self)
    }

    /// The same server with another token.
    ///
    /// # Errors
    /// When the token cannot be sent in a header.
    pub fn shown(&self, token: Option<&Secret>) -> Result<Self, ClientError> {
        self.0.showing(token).map(Self)
    }
}

/// The steps of a model's transfer, silent for 15 minutes at most.
pub type TransferReports = JsonLines<MeshTransfer>;
