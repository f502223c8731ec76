//! `warren mesh transfers`.

use clap::Args;
use client::admin::mesh::MeshTransfer;
use daemon::ConfigFile;

use super::short;
use crate::commands::{
    say, say_json,
    table::{plain, show_list, table},
    target::RunningServer,
    words::{bytes, span},
};

/// List transfers of models: those that run, and the last that ended
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh transfers")]
pub(crate) struct Transfers {
    /// Stop the transfer of this id; what has arrived stays for another pull
    #[arg(long, value_name = "ID")]
    cancel: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Transfers {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        if let Some(id) = &self.cancel {
            let cancelled = warren.cancel_mesh_transfer(id).await?;
            return match self.json {
                true => Ok(say_json(&cancelled)?),
                false => Ok(say(&format!("{} is cancelled", plain(&cancelled.id)))?),
            };
        }
        let transfers = warren.mesh_transfers().await?;
        show_list(&transfers, self.json, "transfers", "No model is on its way", readable)
    }
}

fn readable(transfers: &[MeshTransfer]) -> String {
    let header = ["id", "model", "way", "state", "peers", "detail", "bytes", "of", "rate", "left"];
    let rows: Vec<Vec<String>> = transfers.iter().map(row).collect();
    table(&header, &rows, 4)
}

fn row(transfer: &MeshTransfer) -> Vec<String> {
    let peers: Vec<String> = transfer.peers.iter().map(|id| short(id)).collect();
    let unknown = || "-".to_owned();
    vec![
        plain(&transfer.id),
        plain(&transfer.model),
        plain(&transfer.direction),
        plain(&transfer.state),
        plain(&peers.join(",")),
        plain(transfer.detail.as_deref().unwrap_or_default()),
        bytes(transfer.bytes),
        transfer.total.map_or_else(unknown, bytes),
        format!("{}/s", bytes(transfer.rate)),
        transfer.eta_secs.map_or_else(unknown, span),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_a_row() {
        let transfer = MeshTransfer {
            id: "t1".to_owned(),
            model: "m".to_owned(),
            direction: "in".to_owned(),
            state: "running".to_owned(),
            bytes: 1 << 20,
            total: Some(1 << 30),
            rate: 1 << 19,
            eta_secs: Some(90),
            peers: vec!["ab".repeat(32)],
            ..MeshTransfer::default()
        };
        let table = readable(&[transfer]);
        for part in ["abababab", "running", "1.0 MiB", "1.0 GiB", "512.0 KiB/s", "1m 30s"] {
            assert!(table.contains(part), "{part}: {table}");
        }
    }
}
