//! `warren mesh`: a file for each command, and `serve`, which lends what was fetched.

mod ask;
mod id;
mod models;
mod peers;
pub(super) mod pull;
mod relay;
mod serve;
mod transfers;

use clap::Subcommand;
use daemon::ConfigFile;

use super::worker_runtime;

#[derive(Subcommand)]
pub(crate) enum Mesh {
    /// Show this machine's identity in the mesh
    Id(id::Id),
    /// List the peers of a server, and how each is doing
    Peers(peers::Peers),
    /// List the models that peers serve and pass on
    Models(models::Models),
    /// Fetch a model from peers
    Pull(pull::Pull),
    /// List transfers of models
    Transfers(transfers::Transfers),
    /// Ask a model, here or at a peer, whichever is fastest
    Ask(ask::Ask),
    /// Run a relay, where peers of different networks meet
    Relay(Box<relay::Relay>),
}

impl Mesh {
    pub(crate) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        match self {
            // A relay serves many connections, as a server does.
            Self::Relay(relay) => relay.run(file),
            Self::Id(id) => worker_runtime()?.block_on(id.run(&file)),
            Self::Peers(peers) => worker_runtime()?.block_on(peers.run(&file)),
            Self::Models(models) => worker_runtime()?.block_on(models.run(&file)),
            Self::Pull(pull) => worker_runtime()?.block_on(pull.run(file)),
            Self::Transfers(transfers) => worker_runtime()?.block_on(transfers.run(&file)),
            Self::Ask(ask) => worker_runtime()?.block_on(ask.run(&file)),
        }
    }
}

/// The first digits of a peer's id, which tell it from the others.
fn short(id: &str) -> String {
    let (kind, rest) = id.strip_prefix("device-").map_or(("", id), |rest| ("device-", rest));
    format!("{kind}{}", rest.chars().take(8).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shown_in_short() {
        let id = "d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737";
        assert_eq!(short(id), "d04ab232");
        assert_eq!(short("device-0b1c2d3e-4f50-6172"), "device-0b1c2d3e");
    }
}
