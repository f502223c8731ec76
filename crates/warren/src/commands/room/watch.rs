//! `warren room watch`.

use clap::Args;
use client::RoomClient;
use daemon::{ConfigFile, signals};

use super::{
    follow::{Follow, Next, is_last},
    hosts::Hosts,
    narrator::Narrator,
    room_name::{Password, RoomName},
};
use crate::commands::{note, say, say_json_line};

/// Show the events of a room live, until it is closed
// Not one type with `Show`: the help of `--json` is another.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room watch swift-eagle-42")]
pub(crate) struct Watch {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// Print each event as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Watch {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let found = self.hosts.find(file, &self.room).await?;
        let room = found.room(self.password.get())?;
        let stop = signals::shutdown()?;
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            watched = self.watch(room) => watched,
        }
    }

    async fn watch(&self, room: RoomClient) -> anyhow::Result<()> {
        let mut narrator = Narrator::default();
        // Without the names the events are shown by ids.
        for who in room.participants().await.unwrap_or_default() {
            narrator.meet(&who);
        }
        let mut follow = Follow::new(room);
        loop {
            match follow.next().await? {
                Next::Event(event) => {
                    if self.json {
                        say_json_line(&*event)?;
                    } else {
                        narrator.tell(&event).iter().try_for_each(|line| say(line))?;
                    }
                    if is_last(&event) {
                        return Ok(());
                    }
                }
                Next::Lost(reason, wait) => {
                    let wait = wait.as_secs_f64();
                    note(&format!("not connected: {reason}; trying again in {wait:.1} s"));
                }
                Next::Over => {
                    note("the room is closed");
                    return Ok(());
                }
            }
        }
    }
}
