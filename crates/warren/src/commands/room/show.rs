//! `warren room show`.

use anyhow::bail;
use clap::Args;
use client::{
    ClientError,
    room::{MachineSpecs, ParticipantInfo, RoomSummary, Status},
};
use daemon::ConfigFile;
use serde_json::json;

use super::{
    hosts::{Hosts, LocatedRoom},
    list::time,
    room_name::{Password, RoomName},
};
use crate::commands::{
    note, say, say_json,
    table::{plain, table},
};

/// Show a room and its participants
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren room show swift-eagle-42")]
pub(crate) struct Show {
    /// The room: one of its codes, or its URL
    #[arg(value_name = "CODE")]
    room: RoomName,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    password: Password,
    #[command(flatten)]
    hosts: Hosts,
}

impl Show {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let found = self.hosts.find(file, &self.room).await?;
        let participants = found.room(self.password.get())?.participants().await;
        let participants = match participants {
            Ok(participants) => Some(participants),
            // The summary needs no password.
            Err(ClientError::Refused { status: 401, words }) if self.password.get().is_none() => {
                note(&words);
                None
            }
            Err(error) => bail!(error),
        };
        if self.json {
            let server = found.warren.url();
            let all =
                json!({"server": server, "room": found.summary, "participants": participants});
            return Ok(say_json(&all)?);
        }
        say(&summary(&found))?;
        match participants {
            Some(participants) if participants.is_empty() => Ok(say("\nNobody is in it.")?),
            Some(participants) => Ok(say(&format!("\n{}", people(&participants)))?),
            None => Ok(()),
        }
    }
}

fn summary(found: &LocatedRoom) -> String {
    let RoomSummary { room, participant_count } = &found.summary;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let mut lines = vec![("name", plain(&room.name)), ("code", plain(found.code()))];
    if room.spoken_code.is_some() {
        lines.push(("short code", plain(&room.code)));
    }
    lines.push(("server", plain(&found.warren.url())));
    lines.push(("made", time(room.created_at)));
    if let Some(ends) = room.expires_at {
        lines.push(("ends", format!("{} unless somebody uses it", time(ends))));
    }
    lines.push(("password", yes(room.password_protected)));
    lines.push(("public", yes(room.public)));
    lines.push(("in it", participant_count.to_string()));
    let lines: Vec<String> =
        lines.into_iter().map(|(name, value)| format!("{name:<12}{value}")).collect();
    lines.join("\n")
}

fn people(participants: &[ParticipantInfo]) -> String {
    let header = ["id", "nickname", "status", "models", "machine", "slots", "tokens/s"];
    let rows: Vec<Vec<String>> = participants.iter().map(row).collect();
    table(&header, &rows, 2)
}

fn row(one: &ParticipantInfo) -> Vec<String> {
    let models = if one.models.is_empty() { one.model.clone() } else { one.models.join(",") };
    let rate = one.metrics.and_then(|metrics| metrics.tokens_per_second);
    vec![
        plain(&one.id),
        plain(&one.nickname),
        status(one.status).to_owned(),
        plain(&models),
        plain(&machine(&one.specs)),
        one.max_concurrent.unwrap_or(1).to_string(),
        rate.map_or("-".to_owned(), |rate| format!("{rate:.1}")),
    ]
}

pub(super) const fn status(status: Status) -> &'static str {
    match status {
        Status::Online => "online",
        Status::Busy => "busy",
        Status::Offline => "offline",
    }
}

/// A machine in a few words.
pub(super) fn machine(specs: &MachineSpecs) -> String {
    let gb = |what: &str, size: f64| format!("{size:.0} GB {what}");
    let gpu = match (&specs.gpu, specs.vram) {
        (Some(gpu), Some(vram)) => Some(format!("{gpu} ({vram:.0} GB)")),
        (Some(gpu), None) => Some(gpu.clone()),
        (None, vram) => vram.map(|vram| gb("VRAM", vram)),
    };
    let parts = [gpu, specs.cpu.clone(), specs.ram.map(|ram| gb("RAM", ram))];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_by_its_known_parts() {
        let specs = MachineSpecs {
            gpu: Some("RTX 4090".to_owned()),
            vram: Some(24.0),
            ram: Some(63.7),
            cpu: None,
        };
        assert_eq!(machine(&specs), "RTX 4090 (24 GB), 64 GB RAM");
        assert_eq!(
            machine(&MachineSpecs { vram: Some(8.0), ..MachineSpecs::default() }),
            "8 GB VRAM"
        );
        assert_eq!(plain(&machine(&MachineSpecs::default())), "-");
    }
}
