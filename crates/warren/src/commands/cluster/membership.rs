//! `warren cluster join`, `leave`, `forget` and `rename`: which machines are members, and their names.

use base::Secret;
use clap::Args;
use daemon::ConfigFile;

use super::tell;
use crate::commands::workspace::Output;

/// Make this machine a member, by an invitation
#[derive(Args)]
#[command(
    after_help = "`warren serve` must run on this machine. `warren cluster invite` on a member of \
    the cluster prints the whole line.\n\n\
    Examples:\n  \
    warren cluster join CODE"
)]
pub(crate) struct Join {
    /// The code of the invitation
    code: Secret,
    #[command(flatten)]
    output: Output,
}

impl Join {
    /// The command that makes this machine's server a member by this code.
    pub(crate) const fn by(code: Secret, output: Output) -> Self {
        Self { code, output }
    }

    pub(crate) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let words = workspace.join_cluster(self.code).await?;
        tell("cluster_join", &words, self.output.json)
    }
}

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
