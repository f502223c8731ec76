//! `warren mesh id`.

use std::io::IsTerminal;

use clap::Args;
use client::admin::mesh::{MeshId, MeshRelayJson};
use daemon::{ConfigFile, data::mesh_identity};

use crate::commands::{note, qr, say, say_json, table::plain, target::RunningServer};

/// Show this machine's identity in the mesh: its id, a fingerprint to compare over another channel, and,
/// if its server runs, how it is reached and what is wrong with that. Without a server the key in the
/// data directory is read, or made
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh id --qr")]
pub(crate) struct Id {
    /// Draw the QR code even where standard output is no terminal
    #[arg(long)]
    qr: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Id {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let answer = match self.server.warren(&file.serve) {
            Ok(warren) => warren.mesh_id().await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        let (id, why) = match answer {
            Ok(id) => (id, None),
            Err(error) if self.server.is_named() => return Err(error),
            Err(error) => (self.stored(file)?, Some(error)),
        };
        if self.json {
            return Ok(say_json(&id)?);
        }
        say(&readable(&id))?;
        if self.qr || std::io::stdout().is_terminal() {
            qr::code(&id.id.to_uppercase()).map(|code| say(&format!("\n{code}"))).transpose()?;
        }
        if let Some(why) = why {
            note(&format!(
                "This is the key in the data directory; its server was not asked: {why:#}"
            ));
        }
        Ok(())
    }

    /// The identity in the data directory.
    fn stored(&self, file: &ConfigFile) -> anyhow::Result<MeshId> {
        let id = mesh_identity(&self.server.lookup(&file.serve).directory()?)?.node_id();
        let (id, fingerprint) = (id.to_string(), id.fingerprint());
        Ok(MeshId { id, fingerprint, ..MeshId::default() })
    }
}

fn readable(id: &MeshId) -> String {
    let mut lines = vec![format!("id           {}", plain(&id.id))];
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("{name:<12} {}", plain(value)));
        }
    };
    line("fingerprint", &id.fingerprint);
    line("name", &id.name);
    line("listens at", id.listen.as_deref().unwrap_or_default());
    line("shares with", &id.share);
    for at in &id.relays {
        line("relay", &relay(at));
    }
    for problem in &id.problems {
        line("PROBLEM", problem);
    }
    lines.join("\n")
}

fn relay(relay: &MeshRelayJson) -> String {
    let how = match (&relay.error, relay.connected, relay.challenged) {
        (_, true, true) => "registered".to_owned(),
        (_, true, false) => "registered, with a signature that can be replayed".to_owned(),
        (Some(error), ..) => format!("not registered: {error}"),
        (None, ..) => "not registered yet".to_owned(),
    };
    // The query of the URL is this node's id, which is shown above.
    let url = relay.url.split('?').next().unwrap_or_default();
    format!("{url} ({how})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_left_out_and_problems_are_shown() {
        let id = MeshId { id: "ab".to_owned(), ..MeshId::default() };
        assert_eq!(readable(&id), "id           ab");
        let error = Some("refused".to_owned());
        let relays =
            vec![MeshRelayJson { url: "ws://r?node=ab12".to_owned(), error, ..<_>::default() }];
        let problems = vec!["two\u{1b}".to_owned()];
        let table = readable(&MeshId { relays, problems, ..id });
        assert!(table.contains("ws://r (not registered: refused)"), "{table}");
        assert!(table.contains("PROBLEM      two\u{fffd}"), "{table}");
    }
}
