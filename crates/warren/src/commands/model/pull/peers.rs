//! Has the server that runs here fetch a model from peers of the mesh, if they have it.

use client::{
    Warren,
    admin::mesh::{MeshModel, MeshPull},
};
use daemon::ConfigFile;
use models::ModelId;

use crate::commands::{mesh::pull::watch, note, table::plain, target::RunningServer, words::count};

/// Pulls the model from peers. Returns whether it came. A mesh that is missing or fails is no error, since
/// the hub may still have the model.
pub(super) async fn pull(
    server: &RunningServer,
    file: &ConfigFile,
    id: &ModelId,
    json: bool,
) -> anyhow::Result<bool> {
    // A model that another machine's server fetches does not come here.
    let lookup = server.lookup(&file.serve);
    if server.is_named() || lookup.running().is_none() {
        return Ok(false);
    }
    let Ok(warren) = server.warren(&file.serve) else { return Ok(false) };
    let models = warren.mesh_models().await.unwrap_or_default();
    let has = |model: &&MeshModel| model.id == id.as_str() && !model.offered_by.is_empty();
    let Some(model) = models.iter().find(has) else { return Ok(false) };
    let who = count(model.offered_by.len() as u64, "peer");
    note(&format!("{who} of the mesh has {}: fetching it there", plain(id.as_str())));
    match fetch(&warren, id, json).await {
        Ok(()) => Ok(true),
        Err(error) => {
            note(&format!("peers did not give it: {error:#}"));
            Ok(false)
        }
    }
}

async fn fetch(warren: &Warren, id: &ModelId, json: bool) -> anyhow::Result<()> {
    let request = MeshPull { model: id.to_string(), from: None };
    let last = watch(warren, &request, json).await?;
    match last.state.as_str() {
        "done" => Ok(()),
        _ => anyhow::bail!("{}", last.detail.unwrap_or(last.state)),
    }
}
