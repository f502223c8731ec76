//! `warren web`: the server's web page in a browser, signed in.
//!
//! - `address`: its address, opened in this machine's browser, and as a QR code for a phone
//! - `list`: shows and revokes the sessions of browsers

mod address;
mod list;

use std::io::{IsTerminal, stderr, stdout};

use clap::{Args, Subcommand};
use client::Warren;
use daemon::ConfigFile;
use serde_json::json;

use super::{
    invite::ServerOutput,
    room::{is_loopback, on_the_network},
    run_client, say, say_json,
};

/// Open the server's web page, signed in, here or on a phone
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "The address holds a code that signs one browser in as the server's owner, once and within ten minutes: \
    treat it like a password. Where other people use this machine, open it yourself with --no-open: they could see the \
    address in the list of processes.\n\nExamples:\n  \
    warren web\n  \
    warren web --no-open\n  \
    warren web list\n  \
    warren web revoke ps-0123456789abcdef"
)]
pub(crate) struct Web {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
    /// Show a QR code
    ///
    /// Also where standard error is no terminal.
    #[arg(long, hide_short_help = true)]
    qr: bool,
    #[command(flatten)]
    output: ServerOutput,
}

#[derive(Subcommand)]
enum Command {
    /// List the browsers that are signed in
    List(list::List),
    /// Sign a browser out
    #[command(visible_aliases = ["remove", "rm"])]
    Revoke(list::Revoke),
}

impl Web {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.command(file))
    }

    async fn command(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self.command {
            Some(Command::List(list)) => list.run(file).await,
            Some(Command::Revoke(revoke)) => revoke.run(file).await,
            None => self.open(file).await,
        }
    }

    async fn open(self, file: &ConfigFile) -> anyhow::Result<()> {
        let warren = self.output.server.warren(&file.serve)?;
        let made = warren.create_login_code().await?;
        let url = login_address(&warren.url(), &made.code);
        let draws = self.qr || stderr().is_terminal();
        let phone = if draws || self.output.json { for_phone(&warren).await? } else { None };
        if self.output.json {
            let all = json!({"url": url, "expires": made.expires, "phone_url": phone});
            return Ok(say_json(&all)?);
        }
        say(&url)?;
        if draws {
            address::show(phone.as_deref(), made.expires);
        }
        if !self.no_open && stdout().is_terminal() {
            address::open(&url);
        }
        Ok(())
    }
}

/// The address of a server's page that signs a browser in by a code. The part behind `#` is sent to nobody.
pub(crate) fn login_address(server: &str, code: &str) -> String {
    format!("{server}/#login={code}")
}

/// The address at which a phone reaches the page, with a code of its own; `None` if no phone can reach it.
async fn for_phone(warren: &Warren) -> anyhow::Result<Option<String>> {
    let own = warren.url();
    let reached = if is_loopback(&own) { on_the_network(&own).await } else { Some(own) };
    let Some(reached) = reached else { return Ok(None) };
    let made = warren.create_login_code().await?;
    Ok(Some(login_address(&reached, &made.code)))
}
