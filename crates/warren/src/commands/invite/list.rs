//! `warren invite list` and `warren invite revoke`.

use clap::Args;
use client::admin::invitations::InvitationJson;
use daemon::ConfigFile;
use jiff::{Timestamp, tz::TimeZone};

use super::ServerOutput;
use crate::commands::{
    say, say_json,
    table::{plain, show_list, table},
    words::span,
};

/// The longest name in the list, in characters: five columns have to fit on 80.
const NAME: usize = 20;

#[derive(Args)]
#[command(after_help = "Examples:\n  warren invite list\n  warren invite list --json")]
pub(super) struct List {
    #[command(flatten)]
    output: ServerOutput,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  warren invite revoke gpu-box")]
pub(super) struct Revoke {
    /// The invitation: its id, or the name of the machine
    #[arg(value_name = "ID|NAME")]
    invitation: String,
    #[command(flatten)]
    output: ServerOutput,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let all = self.output.server.warren(&file.serve)?.invitations().await?;
        let empty = "Nobody is invited. `warren invite` prints the line by which a machine joins.";
        show_list(&all, self.output.json, "invitations", empty, |all| {
            readable(all, Timestamp::now())
        })
    }
}

impl Revoke {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.output.server.warren(&file.serve)?;
        let revoked = warren.revoke_invitation(&self.invitation).await?;
        if self.output.json {
            return Ok(say_json(&revoked)?);
        }
        Ok(say(&match (&revoked.key_id, &revoked.name) {
            (Some(key), name) => {
                let name = plain(name.as_deref().unwrap_or_default());
                format!("{name} is shut out: its key {key} is revoked")
            }
            (None, _) => {
                format!("the invitation {} is revoked: nobody joins by it any more", revoked.id)
            }
        })?)
    }
}

fn readable(all: &[InvitationJson], now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = all.iter().map(|one| row(one, now)).collect();
    table(&["id", "machine", "state", "since", "last seen"], &rows, 0)
}

fn row(one: &InvitationJson, now: Timestamp) -> Vec<String> {
    let name = plain(one.name.as_deref().unwrap_or_default());
    let since = one.joined_at.unwrap_or(one.created_at).to_zoned(TimeZone::system());
    let ago = |at: Timestamp| {
        let secs = u64::try_from(now.as_second() - at.as_second()).unwrap_or(0);
        format!("{} ago", span(secs))
    };
    vec![
        one.id.clone(),
        if name.chars().count() > NAME {
            name.chars().take(NAME - 1).chain(['…']).collect()
        } else {
            name
        },
        one.state.clone(),
        since.strftime("%Y-%m-%d %H:%M").to_string(),
        one.last_seen_at.map_or_else(|| "-".to_owned(), ago),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_on_80_columns() {
        let one = InvitationJson {
            id: "i-0123456789abcdef".to_owned(),
            name: Some("x".repeat(64)),
            state: "revoked".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
            joined_at: None,
            key_id: None,
            last_seen_at: Some(Timestamp::UNIX_EPOCH),
            code: None,
            urls: Vec::new(),
        };
        let now = Timestamp::from_second(99 * 86_400 + 3_600 * 23).unwrap();
        let drawn = readable(&[one], now);
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        assert!(drawn.contains("99d 23h ago") && drawn.contains('…'), "{drawn}");
    }
}
