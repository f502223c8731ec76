//! `warren room change`.

use std::path::PathBuf;

use anyhow::anyhow;
use base::Secret;
use clap::Args;
use client::room::plane::ChangeRoom;
use daemon::ConfigFile;

use super::{close::Host, create::defaults, hosts::Hosts, room_name::RoomName};
use crate::{
    commands::{say, say_json, table::plain},
    exit::usage,
};

/// Change a room that you made
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room change swift-eagle-42 --name Wednesday")]
pub(crate) struct Change {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// The new name
    #[arg(long)]
    name: Option<String>,
    /// The new password for joining and using it
    #[arg(long, value_name = "PASSWORD", conflicts_with = "no_password")]
    password: Option<Secret>,
    /// Remove the password
    #[arg(long)]
    no_password: bool,
    /// How its participants answer by default from now on, as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    defaults: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Host,
    #[command(flatten)]
    hosts: Hosts,
}

impl Change {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let change = self.change().map_err(usage)?;
        let found = self.hosts.find(file, &self.room).await?;
        let token = self.host.token(&found)?;
        let room = found.room(None)?.change(&change, &token).await?;
        if self.json {
            return Ok(say_json(&room)?);
        }
        let guarded = if room.room.password_protected { "a password" } else { "no password" };
        let (code, name) = (plain(found.code()), plain(&room.room.name));
        Ok(say(&format!("{code} is called {name} and has {guarded}."))?)
    }

    fn change(&self) -> anyhow::Result<ChangeRoom> {
        let given = self.password.as_ref().map(|password| password.expose().to_owned());
        if given.as_deref() == Some("") {
            return Err(anyhow!("an empty password is none: say --no-password"));
        }
        let change = ChangeRoom {
            name: self.name.clone(),
            password: if self.no_password { Some(String::new()) } else { given },
            defaults: self.defaults.as_deref().map(defaults).transpose()?,
        };
        if change == ChangeRoom::default() {
            return Err(anyhow!(
                "say what to change: --name, --password, --no-password or --defaults"
            ));
        }
        Ok(change)
    }
}
