//! `warren mesh`: this machine among its peers.
//!
//! A file for each command, and `progress`: a model on its way, shown.

mod ask;
mod id;
mod models;
mod peers;
mod progress;
mod pull;
mod relay;
mod transfers;

use clap::{Args, Subcommand};
use daemon::ConfigFile;

use super::worker_runtime;

/// Ask peers, fetch models from them, and see who they are
#[derive(Args)]
pub(crate) struct Mesh {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tell who this machine is in the mesh
    Id(id::Id),
    /// List the peers of a server, and how each is doing
    Peers(peers::Peers),
    /// List the models that peers serve and pass on
    Models(models::Models),
    /// Fetch a model from peers
    Pull(pull::Pull),
    /// List models on their way
    Transfers(transfers::Transfers),
    /// Ask a model, here or at a peer, whichever is fastest
    Ask(ask::Ask),
    /// Run a relay, where peers of different networks meet
    Relay(Box<relay::Relay>),
}

impl Mesh {
    pub(crate) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        match self.command {
            Command::Relay(relay) => relay.run(file),
            command => worker_runtime()?.block_on(command.run(&file)),
        }
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::Id(id) => id.run(file).await,
            Self::Peers(peers) => peers.run(file).await,
            Self::Models(models) => models.run(file).await,
            Self::Pull(pull) => pull.run(file).await,
            Self::Transfers(transfers) => transfers.run(file).await,
            Self::Ask(ask) => ask.run(file).await,
            // It has a runtime of its own.
            Self::Relay(_) => Ok(()),
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
