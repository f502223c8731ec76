//! `warren model`: a file for each command.
//!
//! - `placed`: a model at a machine, and the choice of a machine

mod change;
mod list;
mod placed;
mod pull;

use clap::Subcommand;
use daemon::ConfigFile;

use super::worker_runtime;

#[derive(Subcommand)]
pub(crate) enum Model {
    /// List which model is on which machine, and whether it is in memory
    List(list::List),
    /// Load a model into the memory of a machine
    Load(change::Load),
    /// Take a model out of the memory of a machine
    Unload(change::Unload),
    /// Fetch a model from a hub, or from peers that have it
    Pull(Box<pull::Pull>),
}

impl Model {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run(file),
            Self::Load(load) => load.run(file),
            Self::Unload(unload) => unload.run(file),
            Self::Pull(pull) => worker_runtime()?.block_on(pull.run(file)),
        }
    }
}
