//! `warren room leave`.

use anyhow::{anyhow, bail};
use base::Secret;
use clap::Args;
use client::{ClientError, RemovalToken};
use daemon::ConfigFile;
use serde_json::json;

use super::{
    hosts::{Hosts, LocatedRoom},
    room_name::RoomName,
    tokens::{OwnParticipant, RoomTokens},
};
use crate::{
    commands::{say, say_json, table::plain},
    exit::usage,
};

/// Remove a participant of this machine from a room; its `warren room join` ends
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room leave swift-eagle-42")]
pub(crate) struct Leave {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// The participant, where this machine has several in the room
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    hosts: Hosts,
}

impl Leave {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let found = self.hosts.find(file, &self.room).await?;
        let tokens = RoomTokens::new()?;
        let who = self.who(&found, &tokens)?;
        // A stock server ignores the token.
        let token = Secret::from(who.session_token.clone().unwrap_or_default());
        let left = found.room(None)?.remove(&who.id, RemovalToken::Session(&token)).await;
        if left.is_ok() || matches!(left, Err(ClientError::NotFound { .. })) {
            tokens.forget_session(&who).await?;
        }
        left?;
        if self.json {
            let (participant, room) = (&who.id, found.code());
            return Ok(say_json(&json!({"participant": participant, "room": room, "left": true}))?);
        }
        Ok(say(&format!("{} left {}.", plain(&who.id), plain(found.code())))?)
    }

    fn who(&self, found: &LocatedRoom, tokens: &RoomTokens) -> anyhow::Result<OwnParticipant> {
        let mut all = tokens.participants(&found.warren.url(), &found.summary)?;
        if let Some(id) = &self.id {
            all.retain(|who| who.id == *id);
        } else if all.iter().any(|who| who.session_token.is_some()) {
            all.retain(|who| who.session_token.is_some());
        }
        let ids: Vec<&str> = all.iter().map(|who| who.id.as_str()).collect();
        match ids.len() {
            0 => bail!(ClientError::NotFound {
                words: format!("this machine is not in {}", found.code()),
            }),
            1 => Ok(all.remove(0)),
            _ => Err(usage(anyhow!("this machine is there as {}: say which", ids.join(", ")))),
        }
    }
}
