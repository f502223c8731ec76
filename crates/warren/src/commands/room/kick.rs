//! `warren room kick`.

use anyhow::anyhow;
use clap::Args;
use client::{RemovalToken, RoomClient, room::ParticipantInfo};
use daemon::ConfigFile;
use serde_json::json;

use super::{
    close::Host,
    hosts::Hosts,
    room_name::{Password, RoomName},
};
use crate::{
    commands::{say, say_json, table::plain},
    exit::usage,
};

/// Remove a participant from a room that you made
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room kick swift-eagle-42 ann@laptop")]
pub(crate) struct Kick {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// The participant: its id, or its nickname
    #[arg(value_name = "ID")]
    participant: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: Host,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Kick {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let found = self.hosts.find(file, &self.room).await?;
        let token = self.host.token(&found)?;
        let room = found.room(self.password.get())?;
        let id = self.participant_id(&room).await?;
        room.remove(&id, RemovalToken::Host(&token)).await?;
        if self.json {
            let done = json!({"participant": id, "room": found.code(), "removed": true});
            return Ok(say_json(&done)?);
        }
        Ok(say(&format!("{} is removed.", plain(&self.participant)))?)
    }

    async fn participant_id(&self, room: &RoomClient) -> anyhow::Result<String> {
        // Without the list of participants the name has to be an id.
        let participants = room.participants().await.unwrap_or_default();
        find(&participants, &self.participant)
    }
}

fn find(participants: &[ParticipantInfo], meant: &str) -> anyhow::Result<String> {
    if participants.iter().any(|one| one.id == meant) {
        return Ok(meant.to_owned());
    }
    let named = participants.iter().filter(|one| one.nickname == meant);
    let ids: Vec<&str> = named.map(|one| one.id.as_str()).collect();
    match ids[..] {
        [] => Ok(meant.to_owned()),
        [id] => Ok(id.to_owned()),
        _ => Err(usage(anyhow!(
            "{} may be any of {}: give an id",
            plain(meant),
            plain(&ids.join(", "))
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_participant_is_found_by_its_id_or_a_unique_name() {
        let one = |id: &str, nickname: &str| {
            let json = serde_json::json!({"id": id, "nickname": nickname, "model": "m",
                "endpoint": "http://h", "config": {}, "specs": {}, "connection": {"kind": "tunnel",
                "connected": true, "lastTunnelSeenAt": null}, "status": "online", "joinedAt": 1,
                "lastSeen": 1, "updatedAt": 1});
            serde_json::from_value(json).unwrap()
        };
        let all = [one("p1", "Ann"), one("p2", "Bob"), one("p3", "Bob"), one("Ann", "Cy")];
        assert_eq!(find(&all, "p2").unwrap(), "p2");
        assert_eq!(find(&all, "Ann").unwrap(), "Ann", "an id before a name");
        assert_eq!(find(&all, "Cy").unwrap(), "Ann");
        assert_eq!(find(&all, "p9").unwrap(), "p9", "the server knows best");
        assert!(format!("{:#}", find(&all, "Bob").unwrap_err()).contains("p2, p3"));
    }
}
