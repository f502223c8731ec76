//! `warren mesh peers`.

use clap::Args;
use client::admin::mesh::MeshPeer;
use daemon::ConfigFile;

use super::short;
use crate::commands::{
    table::{first_of, plain, show_list, table},
    target::RunningServer,
    words::span,
};

/// List the peers of a server, and how each is doing
#[derive(Args)]
pub(crate) struct Peers {
    /// Print JSON, with whole ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Peers {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let peers = self.server.warren(&file.serve)?.mesh_peers().await?;
        let empty = "No peer is known. Name one with --mesh-peer HOST:PORT, or look for them with \
                     --mesh-advertise";
        show_list(&peers, self.json, "peers", empty, readable)
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
        first_of(&peer.models),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_a_peer_without_control_characters() {
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
