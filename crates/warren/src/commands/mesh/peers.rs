//! `warren mesh peers`.

use clap::Args;
use client::admin::mesh::{MeshPeer, MeshPeers, MeshUnlinked};
use daemon::ConfigFile;

use super::short;
use crate::commands::{
    say, say_json,
    table::{first_of, plain, table},
    target::RunningServer,
    words::span,
};

/// List the peers of a server, and how each is doing
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh peers")]
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
        if self.json {
            return Ok(say_json(&peers)?);
        }
        Ok(say(&shown(&peers))?)
    }
}

fn shown(peers: &MeshPeers) -> String {
    let MeshPeers { peers, unlinked } = peers;
    match (peers.is_empty(), unlinked.is_empty()) {
        (true, true) => {
            "No peer is known. Name one with --mesh-peer HOST:PORT, or look for them with \
                         --mesh-advertise"
                .to_owned()
        }
        (true, false) => without_link(unlinked),
        (false, true) => readable(peers),
        (false, false) => format!("{}\n{}", readable(peers), without_link(unlinked)),
    }
}

/// The peers that could not be linked to, and why.
fn without_link(unlinked: &[MeshUnlinked]) -> String {
    let line = |one: &MeshUnlinked| {
        let (place, why) = (plain(&one.place), plain(&one.why));
        format!("No link to {place}: {why} ({} ago)", span(one.met_secs))
    };
    unlinked.iter().map(line).collect::<Vec<_>>().join("\n")
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
    fn a_peer_that_was_refused_is_shown_with_the_reason() {
        let unlinked = vec![MeshUnlinked {
            place: "10.0.0.7\u{1b}:9180".to_owned(),
            why: "another passcode".to_owned(),
            met_secs: 4,
        }];
        let line = "No link to 10.0.0.7\u{fffd}:9180: another passcode (4s ago)";
        let alone = shown(&MeshPeers { peers: Vec::new(), unlinked: unlinked.clone() });
        assert_eq!(alone, line);
        let both = shown(&MeshPeers { peers: vec![MeshPeer::default()], unlinked });
        assert!(both.ends_with(&format!("\n{line}")) && both.starts_with("ID "), "{both}");
        assert!(shown(&MeshPeers::default()).contains("--mesh-peer"));
    }

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
        let table = readable(&[peer]);
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
            assert!(table.contains(part), "{part}: {table}");
        }
    }
}
