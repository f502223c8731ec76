//! `warren cluster invite` and `warren cluster invites`.

use clap::Args;
use daemon::ConfigFile;
use jiff::{Timestamp, tz::TimeZone};
use protocol::workspace::client::ClusterInvitation;
use serde_json::json;

use super::tell;
use crate::commands::{note, qr, say, say_json, session::attach::size, workspace::Output};

/// The columns between a QR code and the words beside it, and the fewest columns of this gap and the words
/// together.
const GAP: usize = 2;
const NARROWEST: usize = GAP + 28;

/// Invite one machine: prints the line by which it joins
#[derive(Args)]
#[command(
    after_help = "The invitation is good for one machine and for an hour. The other machine must \
    reach this one at its peer port: --peer-listen of `warren serve`.\n\n\
    Examples:\n  \
    warren cluster invite"
)]
pub(crate) struct Invite {
    #[command(flatten)]
    output: Output,
}

impl Invite {
    /// The command as `warren invite --member` runs it.
    pub(crate) const fn at(output: Output) -> Self {
        Self { output }
    }

    pub(crate) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let invitation = self.output.server.connect(file).await?.invite().await?;
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

/// Prints the line to standard output, and everything else for people.
fn show(invitation: &ClusterInvitation, line: &str) {
    let (cols, rows) = size().unwrap_or((80, 24));
    note(&beside(invitation, line, (cols.into(), rows.into())));
}

/// The words about an invitation. Its QR code is beside them if both fit on a terminal of this size, between
/// the line itself and the next prompt of the shell.
fn beside(invitation: &ClusterInvitation, line: &str, (cols, rows): (usize, usize)) -> String {
    let words = words(invitation);
    let above = line.chars().count().div_ceil(cols.max(1));
    let room = rows.saturating_sub(above + 1);
    let code = qr::code_within(invitation.code.expose(), room);
    let width =
        code.as_ref().and_then(|code| code.lines().next()).map_or(0, |it| it.chars().count());
    let beside = wrapped(&words, cols.saturating_sub(width + GAP));
    match code.filter(|code| width + NARROWEST <= cols && beside.len() <= code.lines().count()) {
        Some(code) => {
            let words = beside.iter().map(String::as_str).chain(std::iter::repeat(""));
            let rows = code.lines().zip(words);
            let rows =
                rows.map(|(code, words)| format!("{code}{:GAP$}{words}", "").trim_end().to_owned());
            rows.collect::<Vec<_>>().join("\n")
        }
        None => wrapped(&words, cols).join("\n"),
    }
}

fn words(invitation: &ClusterInvitation) -> String {
    let until = until(invitation.expires_at);
    let mut words = format!(
        "Run this line on the other machine, where `warren serve` runs. It is good for one machine, until \
         {until}. The id of the invitation is {}.",
        invitation.invite_id
    );
    if invitation.addresses.iter().all(|address| is_loopback(address)) {
        words += " Only programs of this machine reach it: give `warren serve` a --peer-listen that other \
                  machines reach, such as 0.0.0.0:9179.";
    }
    words
}

/// The lines of a text, each of at most `cols` columns if its words allow it.
fn wrapped(text: &str, cols: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().filter(|last| {
            last.is_empty() || last.chars().count() + 1 + word.chars().count() <= cols
        });
        match last {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) => last.push_str(&format!(" {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A time of day in this machine's time zone.
fn until(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M").to_string()
}

fn is_loopback(address: &str) -> bool {
    address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use base::Secret;

    use super::*;

    fn invitation(addresses: &[&str]) -> ClusterInvitation {
        ClusterInvitation {
            invite_id: "02fa199852b38905".to_owned(),
            code: Secret::from("x".repeat(95)),
            expires_at: Timestamp::UNIX_EPOCH,
            addresses: addresses.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn the_line_the_code_and_the_words_fit_on_a_terminal_of_80_by_24() {
        for addresses in [&["127.0.0.1:9179"][..], &["192.168.100.100:9179"]] {
            let invitation = invitation(addresses);
            let line = format!("warren cluster join {}", invitation.code.expose());
            let shown = beside(&invitation, &line, (80, 24));
            assert!(shown.contains('█') && shown.contains("Run this line"), "{shown}");
            assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
            // The line itself takes two rows, the shell's next prompt one.
            assert!(shown.lines().count() + 2 < 24, "{shown}");
        }
    }

    #[test]
    fn where_the_code_does_not_fit_the_words_stand_alone() {
        let invitation = invitation(&["127.0.0.1:9179"]);
        for size in [(80, 20), (50, 24), (0, 0)] {
            let shown = beside(&invitation, "line", size);
            assert!(!shown.contains('█') && shown.contains("02fa199852b38905"), "{size:?}");
        }
    }
}
