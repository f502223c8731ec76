//! `warren cluster invite`.

use clap::Args;
use daemon::ConfigFile;
use jiff::{Timestamp, tz::TimeZone};
use protocol::workspace::client::ClusterInvitation;
use serde_json::json;

use crate::commands::{note, qr, say, say_json, workspace::Output};

/// Invite one machine: prints the line by which it joins
#[derive(Args)]
#[command(
    after_help = "The invitation is good for one machine and for an hour. The other machine must \
    reach this one at its peer port: --peer-listen of `warren serve`."
)]
pub(super) struct Invite {
    #[command(flatten)]
    output: Output,
}

impl Invite {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let invitation = self.output.place.connect(file).await?.invite().await?;
        let line = format!("warren cluster join {}", invitation.code.expose());
        if self.output.json {
            return Ok(say_json(&json!({
                "invite_id": invitation.invite_id,
                "code": invitation.code.expose(),
                "command": line,
                "expires_at": invitation.expires_at,
                "addresses": invitation.addresses,
            }))?);
        }
        say(&line)?;
        show(&invitation, &line);
        Ok(())
    }
}

/// All but the line itself is for people.
fn show(invitation: &ClusterInvitation, line: &str) {
    if let Some(code) = qr::code(line) {
        note(&code);
    }
    let until = until(invitation.expires_at);
    note(&format!(
        "Run this line on the other machine, where `warren serve` runs. It is good for one machine, \
         until {until}. The id of the invitation is {}.",
        invitation.invite_id
    ));
    if invitation.addresses.iter().all(|address| is_loopback(address)) {
        note(
            "Only programs of this machine reach it: give `warren serve` a --peer-listen that other \
             machines reach, such as 0.0.0.0:9179.",
        );
    }
}

/// A time of day of this machine.
pub(super) fn until(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M").to_string()
}

fn is_loopback(address: &str) -> bool {
    address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}
