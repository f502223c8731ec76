//! `warren model`: a file for each command.

mod pull;

use clap::Subcommand;
use daemon::ConfigFile;

use super::worker_runtime;

#[derive(Subcommand)]
pub(crate) enum Model {
    /// Fetch a model from a hub, or from peers that have it
    Pull(Box<pull::Pull>),
}

impl Model {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::Pull(pull) => worker_runtime()?.block_on(pull.run(file)),
        }
    }
}
