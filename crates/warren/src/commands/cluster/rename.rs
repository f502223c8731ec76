//! `warren cluster rename`.

use clap::Args;
use daemon::ConfigFile;

use super::tell;
use crate::commands::workspace::Output;

/// Give a machine of the workspace another name
#[derive(Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = "Examples:\n  \
    warren cluster rename desk               (the machine that is asked)\n  \
    warren cluster rename old-name new-name  (any machine that is reachable)")]
pub(super) struct Rename {
    /// The machine: its node id or its name [default: the one that is asked]
    node: Option<String>,
    /// Its new name
    name: String,
    #[command(flatten)]
    output: Output,
}

impl Rename {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let node = match self.node {
            Some(node) => node,
            None => workspace.cluster_status().await?.node_id,
        };
        let words = workspace.rename_node(node, self.name).await?;
        tell("rename_node", &words, self.output.json)
    }
}
