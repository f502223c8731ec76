//! Stands in for the models of a cluster's members on systems without a workspace.

use std::pin::Pin;

use access::Keys;
use api::{
    Api, ApiError,
    elsewhere::{Elsewhere, Way},
};
use base::KeyId;

/// Without a cluster, no other machine has models for sessions.
pub(crate) struct ClusterModels(());

impl ClusterModels {
    pub(crate) fn of(_api: &Api, _keys: &Keys) -> Self {
        Self(())
    }
}

impl Elsewhere for ClusterModels {
    fn is_for(&self, _key: &KeyId) -> bool {
        false
    }

    fn find(
        &self,
        _key: &KeyId,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Box<dyn Way>>, ApiError>> + Send>> {
        Box::pin(async { Ok(None) })
    }
}
