//! `warren cluster leave`.

use clap::Args;
use daemon::ConfigFile;

use super::tell;
use crate::commands::workspace::Output;

/// Take this machine out; its sessions go on
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren cluster leave")]
pub(super) struct Leave {
    #[command(flatten)]
    output: Output,
}

impl Leave {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let words = self.output.server.connect(file).await?.leave_cluster().await?;
        tell("cluster_leave", &words, self.output.json)
    }
}
