//! `warren web list` and `warren web revoke`.

use clap::Args;
use client::admin::web::PageSessionJson;
use daemon::ConfigFile;
use jiff::{Timestamp, tz::TimeZone};

use crate::commands::{
    invite::ServerOutput,
    say, say_json,
    table::{plain, show_list, table},
    words::span,
};

#[derive(Args)]
#[command(after_help = "Examples:\n  warren web list\n  warren web list --json")]
pub(super) struct List {
    #[command(flatten)]
    output: ServerOutput,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  warren web revoke ps-0123456789abcdef")]
pub(super) struct Revoke {
    /// The session's id, which `warren web list` shows
    #[arg(value_name = "ID")]
    session: String,
    #[command(flatten)]
    output: ServerOutput,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let all = self.output.server.warren(&file.serve)?.page_sessions().await?;
        let empty = "No browser is signed in. `warren web` opens the page, signed in.";
        show_list(&all, self.output.json, "sessions", empty, |all| readable(all, Timestamp::now()))
    }
}

impl Revoke {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.output.server.warren(&file.serve)?;
        let revoked = warren.revoke_page_session(&self.session).await?;
        if self.output.json {
            return Ok(say_json(&revoked)?);
        }
        Ok(say(&format!("the browser is signed out: {}", plain(&revoked.browser)))?)
    }
}

fn readable(all: &[PageSessionJson], now: Timestamp) -> String {
    let rows: Vec<Vec<String>> = all.iter().map(|one| row(one, now)).collect();
    table(&["id", "of", "since", "last used", "browser"], &rows, 0)
}

fn row(one: &PageSessionJson, now: Timestamp) -> Vec<String> {
    let since = one.created_at.to_zoned(TimeZone::system());
    let ago = |at: Timestamp| {
        let secs = u64::try_from(now.as_second() - at.as_second()).unwrap_or(0);
        format!("{} ago", span(secs))
    };
    vec![
        one.id.clone(),
        plain(&one.name),
        since.strftime("%Y-%m-%d %H:%M").to_string(),
        one.last_used_at.map_or_else(|| "-".to_owned(), ago),
        plain(&one.browser),
    ]
}
