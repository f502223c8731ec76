//! `warren cluster invites`.

use clap::Args;
use daemon::ConfigFile;

use super::{invite::until, tell};
use crate::commands::{say, say_json, workspace::Output};

/// List the invitations that may still be used, or withdraw one
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren cluster invites")]
pub(super) struct Invites {
    /// Withdraw the invitation with this id
    #[arg(long, value_name = "ID")]
    revoke: Option<String>,
    #[command(flatten)]
    output: Output,
}

impl Invites {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        if let Some(id) = self.revoke {
            let words = workspace.revoke_invite(id).await?;
            return tell("cluster_revoke_invite", &words, self.output.json);
        }
        let invites = workspace.invites().await?;
        if self.output.json {
            return Ok(say_json(&invites)?);
        }
        for invite in &invites {
            say(&format!("{} until {}", invite.invite_id, until(invite.expires_at)))?;
        }
        if invites.is_empty() {
            say("no invitation is open")?;
        }
        Ok(())
    }
}
