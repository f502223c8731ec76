//! `warren mesh peers`.

use clap::Args;
use client::admin::mesh::MeshPeer;
use daemon::ConfigFile;
use serde_json::json;

use super::short;
use crate::commands::{
    say, say_json,
    table::{plain, table},
    target::Running,
    words::span,
};

/// Models of one peer that are named; the others are counted.
const NAMED: usize = 3;

/// List the peers of a server, and how each is doing
#[derive(Args)]
pub(super) struct Peers {
    /// Print JSON, with whole ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Running,
}

impl Peers {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let peers = self.server.warren(&file.serve)?.mesh_peers().await?;
        if self.json {
            return Ok(say_json(&json!({"peers": peers}))?);
        }
        if peers.is_empty() {
            return Ok(say(
                "No peer is known. Name one with --mesh-peer HOST:PORT, or look for them \
                           with --mesh-advertise",
            )?);
        }
        Ok(say(&readable(&peers))?)
    }
}

fn readable(peers: &[MeshPeer]) -> String {
    let header = [
        "id", "name", "link", "sealed", "status", "models", "chip", "warren", "heard", "takes",
        "tokens/s",
    ];
    let rows: Vec<Vec<String>> = peers.iter().map(row).collect();
    table(&header, &rows, 3)
}

fn row(peer: &MeshPeer) -> Vec<String> {
    let link = match &peer.address {
        Some(address) => format!("{} {address}", peer.link),
        None => peer.link.clone(),
    };
    let sealed = match peer.link.as_str() {
        "lan" | "relay" if peer.sealed => "yes",
        "lan" | "relay" => "NO",
        _ => "",
    };
    let speed = peer.tokens_per_second.map(|speed| format!("{speed:.1}")).unwrap_or_default();
    vec![
        short(&plain(&peer.id)),
        plain(&peer.name),
        plain(&link),
        plain(sealed),
        status(peer),
        models(&peer.models),
        plain(&peer.chip),
        plain(peer.warren.as_deref().unwrap_or_default()),
        peer.heard_secs.map_or("-".to_owned(), |secs| format!("{} ago", span(secs))),
        peer.capacity.to_string(),
        plain(&speed),
    ]
}

fn status(peer: &MeshPeer) -> String {
    match peer.throttle {
        1..100 if peer.status == "ok" => format!("ok, at {} %", peer.throttle),
        _ => plain(&peer.status),
    }
}

fn models(models: &[String]) -> String {
    let named: Vec<&str> = models.iter().take(NAMED).map(String::as_str).collect();
    match models.len().checked_sub(NAMED) {
        Some(more @ 1..) => plain(&format!("{} and {more} more", named.join(","))),
        _ => plain(&named.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_row_without_anything_that_moves_the_cursor() {
        let peer = MeshPeer {
            id: "d0".repeat(32),
            name: "gpu\u{1b}".to_owned(),
            link: "lan".to_owned(),
            address: Some("10.0.0.1:9180".to_owned()),
            sealed: true,
            status: "ok".to_owned(),
            models: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            throttle: 60,
            tokens_per_second: Some(12.34),
            heard_secs: Some(3),
            capacity: 4,
            ..MeshPeer::default()
        };
        let told = readable(&[peer]);
        for part in [
            "d0d0d0d0 ",
            "gpu\u{fffd}",
            "lan 10.0.0.1:9180",
            "yes",
            "ok, at 60 %",
            "a,b,c and 1 more",
            "3s ago",
            " 4 ",
            "12.3",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
