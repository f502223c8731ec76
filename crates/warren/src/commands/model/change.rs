//! `warren model load` and `warren model unload`.

use std::time::Instant;

use anyhow::bail;
use base::LoadState;
use clap::Args;
use client::Warren;
use daemon::{ConfigFile, signals};

use super::placed::{PlacedModel, placed, to_load, to_unload};
use crate::commands::{note, run_client, say, say_json, table::plain, target::RunningServer};

/// Load a model into the memory of a machine, so that its first request need not wait
///
/// Machines that run their models themselves load them by their first request, too.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren model load qwen3-8b\n  \
    warren model load qwen3-8b --worker gpu-box")]
pub(crate) struct Load {
    #[command(flatten)]
    change: Change,
}

/// Take a model out of the memory of a machine; its next request loads it again
///
/// A model that a request uses stays.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren model unload qwen3-8b\n  \
    warren model unload qwen3-8b --worker gpu-box")]
pub(crate) struct Unload {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
struct Change {
    /// The model, as `warren model list` shows it
    #[arg(value_name = "MODEL")]
    model: String,
    /// The machine, by its worker's name or id [default: the one that has it in memory, or loads it
    /// fastest]
    #[arg(long, short, value_name = "WORKER")]
    worker: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Load {
    pub(super) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        self.change.run(file, true)
    }
}

impl Unload {
    pub(super) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        self.change.run(file, false)
    }
}

impl Change {
    fn run(&self, file: &ConfigFile, loads: bool) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        run_client(async {
            let stop = signals::shutdown()?;
            tokio::select! {
                () = stop.cancelled() => bail!("cancelled; what the machine has begun, it goes on with"),
                changed = self.change(&warren, loads) => changed,
            }
        })
    }

    async fn change(&self, warren: &Warren, loads: bool) -> anyhow::Result<()> {
        let all = placed(&warren.workers().await?);
        let (model, worker) = (self.model.as_str(), self.worker.as_deref());
        let choose = if loads { to_load } else { to_unload };
        let at = choose(&all, model, worker)?;
        if loads && !self.json {
            note(&begun(&at));
        }
        let began = Instant::now();
        let changed = warren.change_model(&at.worker_id, model, loads).await?;
        if self.json {
            return Ok(say_json(&changed)?);
        }
        let (done, machine) = (plain(&changed.done), plain(&changed.worker_name));
        let took = began.elapsed().as_secs_f64();
        Ok(say(&format!("{} is {done} on {machine}, after {took:.1} s", plain(&changed.model)))?)
    }
}

/// The message before a load, which may take minutes.
fn begun(at: &PlacedModel) -> String {
    let (model, machine) = (plain(&at.id), plain(&at.machine));
    let expected = at.facts.load_ms.map(|took| took.div_ceil(1_000));
    match (at.facts.load, expected) {
        (Some(LoadState::Loaded), _) => format!("{model} is in the memory of {machine} already"),
        (_, Some(seconds)) => format!("Loading {model} on {machine}: about {seconds} s"),
        (_, None) => format!("Loading {model} on {machine}"),
    }
}
