//! `warren mesh pull`.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use client::{
    ClientError, Warren,
    admin::mesh::{MeshPull, MeshTransfer},
};
use daemon::{ConfigFile, ServeOptions, signals};

use super::{progress::show, serve::serve};
use crate::commands::{
    note, progress::Progress, say, say_json_line, table::plain, target::RunningServer, words::bytes,
};

/// Fetch a model from all peers that have the same files, at once. The server fetches it, so a pull goes on
/// if this command is interrupted, and resumes where it broke off
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren mesh pull qwen3-8b --from lab\n  \
    warren mesh pull qwen3-8b --serve")]
pub(crate) struct Pull {
    /// The model, as `warren mesh models` lists it
    model: String,
    /// From this peer only: its id, the beginning of it, or its name
    #[arg(long, value_name = "PEER")]
    from: Option<String>,
    /// Stop fetching it instead; what has arrived stays for another pull
    #[arg(long, conflicts_with = "from")]
    cancel: bool,
    /// Serve it then: unless this machine's server does, lend it until you stop this command
    #[arg(long, conflicts_with = "cancel")]
    serve: bool,
    /// Print each step as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: RunningServer,
}

impl Pull {
    pub(super) async fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        let warren = self.server.warren(&file.serve)?;
        if self.cancel {
            return self.stop(&warren).await;
        }
        let last = self.to_its_end(&warren).await?;
        let place = PathBuf::from(last.detail.clone().unwrap_or_default());
        self.tell(last)?;
        if !self.serve {
            return Ok(());
        }
        let process = ServeOptions { data_dir: self.server.data_dir(&file.serve), ..file.serve };
        serve(&place, &warren, file.worker, process).await
    }

    /// Watches the transfer. Returns its last step.
    async fn to_its_end(&self, warren: &Warren) -> anyhow::Result<MeshTransfer> {
        let stop = signals::shutdown()?;
        tokio::select! {
            () = stop.cancelled() => bail!(
                "not watched any more; the server goes on. `warren mesh pull {model}` shows it again, \
                 with --cancel it stops",
                model = self.model
            ),
            ended = self.watch(warren) => ended,
        }
    }

    /// Shows each step. Returns the last.
    async fn watch(&self, warren: &Warren) -> anyhow::Result<MeshTransfer> {
        let asked = MeshPull { model: self.model.clone(), from: self.from.clone() };
        let mut pulling = warren.mesh_pull(&asked).await?;
        let (mut progress, mut last) = (Progress::new(), None);
        while let Some(step) = pulling.next().await? {
            match self.json {
                true => say_json_line(&step)?,
                false => show(&mut progress, &step),
            }
            last = Some(step);
        }
        progress.end();
        last.ok_or_else(|| anyhow!("the server told nothing of the pull"))
    }

    fn tell(&self, last: MeshTransfer) -> anyhow::Result<()> {
        let (model, detail) = (plain(&self.model), last.detail.unwrap_or_default());
        match (last.state.as_str(), last.code.as_deref()) {
            ("done", _) if self.json => Ok(()),
            ("done", _) => {
                Ok(say(&format!("{model} is there, {}: {}", bytes(last.bytes), plain(&detail)))?)
            }
            ("cancelled", _) => bail!("the pull of {model} was cancelled"),
            ("failed", Some("not_found")) => {
                Err(ClientError::NotFound { words: plain(&detail) }.into())
            }
            ("failed", _) => bail!("{model} could not be fetched: {}", plain(&detail)),
            (state, _) => bail!(
                "the server stopped telling while the pull was {}: ask again, and it goes on",
                plain(state)
            ),
        }
    }

    async fn stop(&self, warren: &Warren) -> anyhow::Result<()> {
        let runs = |transfer: &MeshTransfer| {
            let ended = matches!(transfer.state.as_str(), "done" | "failed" | "cancelled");
            transfer.direction == "in" && transfer.model == self.model && !ended
        };
        let transfers = warren.mesh_transfers().await?;
        let Some(running) = transfers.iter().find(|transfer| runs(transfer)) else {
            let words = format!("{} is not being fetched", plain(&self.model));
            return Err(ClientError::NotFound { words }.into());
        };
        let cancelled = warren.cancel_mesh_transfer(&running.id).await?;
        if self.json {
            return Ok(say_json_line(&cancelled)?);
        }
        note("what has arrived stays for another pull");
        Ok(())
    }
}
