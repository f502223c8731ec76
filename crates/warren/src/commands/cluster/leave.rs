//! `warren cluster leave` and `warren cluster forget`: this machine, or another one, is taken out.

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

/// Take another machine out that is lost or not wanted any more
#[derive(Args)]
#[command(
    after_help = "Its sessions disappear from the other machines' lists, and it comes back only by \
    a new invitation. The others get a new token, which a --cluster-token in their settings does not \
    undo.\n\n\
    Examples:\n  \
    warren cluster forget lost-box"
)]
pub(super) struct Forget {
    /// The machine: its node id or its name
    node: String,
    #[command(flatten)]
    output: Output,
}

impl Forget {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let words = workspace.forget_member(self.node).await?;
        tell("cluster_forget", &words, self.output.json)
    }
}
