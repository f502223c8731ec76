//! `warren room remove`, and the token of a room's host.

use anyhow::{Context, anyhow};
use base::Secret;
use clap::Args;
use daemon::{
    ConfigFile,
    data::{ADMIN_TOKEN, read_token},
    settings::data_dir,
};
use serde_json::json;

use super::{
    hosts::{Hosts, LocatedRoom},
    invitation::is_loopback,
    room_name::RoomName,
    tokens::RoomTokens,
};
use crate::{
    commands::{note, prompt, say, say_json, table::plain, words::count},
    exit::usage,
};

/// The token of a room's host
#[derive(Args)]
pub(super) struct Host {
    /// The token that `warren room create --json` prints [default: the one that this machine has stored]
    #[arg(
        long,
        env = "WARREN_HOST_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        hide_short_help = true
    )]
    host_token: Option<Secret>,
}

impl Host {
    /// The given or stored token of a room's host.
    pub(super) fn token(&self, found: &LocatedRoom) -> anyhow::Result<Secret> {
        self.known(found)?.with_context(|| {
            format!(
                "only the host of {} may do this: it was not made on this machine, or on a server of \
                 another address; give --host-token TOKEN",
                found.code()
            )
        })
    }

    fn known(&self, found: &LocatedRoom) -> anyhow::Result<Option<Secret>> {
        match &self.host_token {
            Some(token) => Ok(Some(token.clone())),
            None => RoomTokens::new()?.host_token(&found.warren.url(), &found.summary),
        }
    }
}

/// Close a room for good; the server's administrator may, too
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room remove swift-eagle-42")]
pub(crate) struct Close {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Host,
    #[command(flatten)]
    hosts: Hosts,
}

impl Close {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let found = self.hosts.find(file, &self.room).await?;
        if !self.yes && !confirmed(&found)? {
            note("It stays open.");
            return Ok(());
        }
        match self.host.known(&found)? {
            Some(token) => found.room(None)?.close(&token).await?,
            None => {
                // The administrator's token is sent as a key, too: only a key is checked for the
                // administrator's rights.
                let token = self
                    .administrators(file, &found)
                    .map_or_else(|| self.host.token(&found), Ok)?;
                found.room(Some(&token))?.close(&token).await?;
            }
        }
        RoomTokens::new()?.forget_room(&found.warren.url(), &found.summary.room.id).await?;
        if self.json {
            return Ok(say_json(&json!({"room": found.code(), "closed": true}))?);
        }
        Ok(say(&format!("{} is closed.", plain(found.code())))?)
    }

    /// The token of the server's administrator: the given one or, for a server on this machine, the one in its
    /// data directory.
    fn administrators(&self, file: &ConfigFile, found: &LocatedRoom) -> Option<Secret> {
        if let Some(token) = self.hosts.token(file) {
            return Some(token);
        }
        if !is_loopback(&found.warren.url()) {
            return None;
        }
        let directory = std::env::var_os("WARREN_DATA_DIR").map(Into::into);
        let directory = data_dir(directory.or_else(|| file.serve.data_dir.clone())).ok()?;
        read_token(&directory, ADMIN_TOKEN).ok()?
    }
}

fn confirmed(found: &LocatedRoom) -> anyhow::Result<bool> {
    if !prompt::is_attended() {
        return Err(usage(anyhow!("closing a room cannot be undone: say --yes")));
    }
    let people = count(u64::from(found.summary.participant_count), "participant");
    let name = plain(&found.summary.room.name);
    prompt::confirm(&format!("Close {name} ({}) with {people} for good?", plain(found.code())))
}
