//! `warren cluster join`.

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
    /// Joins by this code the cluster of this machine's server.
    pub(crate) const fn by(code: Secret, output: Output) -> Self {
        Self { code, output }
    }

    pub(crate) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let words = workspace.join_cluster(self.code).await?;
        tell("cluster_join", &words, self.output.json)
    }
}
