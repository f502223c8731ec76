//! `warren team send` and `inbox`.

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::client::{GetTeamInbox, RelayTeamMessage};
use serde_json::json;

use super::{
    Output,
    find::{called, member, members, team},
};
use crate::commands::{answer::prompt, say, say_json_line};

/// Tell a member something
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team send review --to races 'look at the dispatcher first'")]
pub(super) struct Send {
    /// The team
    team: String,
    /// What; - reads standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// Who says it
    #[arg(long, value_name = "MEMBER", default_value = "leader")]
    from: String,
    /// To whom [default: to the leader or, from the leader, to every team worker]
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Read what a member was sent
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team inbox review leader")]
pub(super) struct Inbox {
    /// The team
    team: String,
    /// Whose
    #[arg(value_name = "MEMBER")]
    session: String,
    /// From this number on [default: all]
    #[arg(long, value_name = "SEQ")]
    since: Option<u64>,
    #[command(flatten)]
    output: Output,
}

impl Send {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let payload = prompt(&self.text)?;
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let members = members(&mut workspace, &team).await?;
        let from_session_id = member(&team, &members, &self.from)?;
        let to = self.to.as_deref().map(|meant| member(&team, &members, meant));
        let to_session_id = to.transpose()?;
        let team_id = team.id;
        let message = RelayTeamMessage { team_id, from_session_id, to_session_id, payload };
        let seq = workspace.relay(message).await?;
        match self.output.json {
            true => Ok(say_json_line(&json!({"team_id": team_id, "seq": seq}))?),
            false => Ok(say(&format!("message {seq} is kept for whom it is for"))?),
        }
    }
}

impl Inbox {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let members = members(&mut workspace, &team).await?;
        let session_id = member(&team, &members, &self.session)?;
        let (team_id, mut since_seq) = (team.id, self.since);
        // The server answers in pages.
        loop {
            let request = GetTeamInbox { team_id, session_id, since_seq };
            let inbox = workspace.team_inbox(request).await?;
            if inbox.messages.is_empty() {
                break;
            }
            for message in &inbox.messages {
                if self.output.json {
                    say_json_line(message)?;
                    continue;
                }
                let from = called(&members, message.from_session_id);
                let (seq, payload) = (message.seq, &message.payload);
                say(&format!("{seq} from {from}: {payload}"))?;
            }
            if since_seq.is_some_and(|since| inbox.next_seq <= since) {
                break;
            }
            since_seq = Some(inbox.next_seq);
        }
        Ok(())
    }
}
