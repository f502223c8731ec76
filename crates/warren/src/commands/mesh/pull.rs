//! `warren mesh pull`, and how far a transfer of the mesh is.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use client::{
    ClientError, Warren,
    admin::mesh::{MeshPull, MeshTransfer},
};
use daemon::{ConfigFile, ServeOptions, signals};

use super::{serve::serve, short};
use crate::commands::{
    note,
    progress::{Progress, Step},
    say, say_json_line,
    table::plain,
    target::RunningServer,
    words::{bytes, count, span},
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
        let request = MeshPull { model: self.model.clone(), from: self.from.clone() };
        let stop = signals::shutdown()?;
        tokio::select! {
            () = stop.cancelled() => bail!(
                "not watched any more; the server goes on. `warren mesh pull {model}` shows it again, \
                 with --cancel it stops",
                model = self.model
            ),
            ended = watch(warren, &request, self.json) => ended,
        }
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

/// Has the server fetch a model from peers, and shows each step. Returns the last.
pub(crate) async fn watch(
    warren: &Warren,
    request: &MeshPull,
    json: bool,
) -> anyhow::Result<MeshTransfer> {
    let mut pulling = warren.mesh_pull(request).await?;
    let (mut progress, mut last) = (Progress::new(), None);
    while let Some(step) = pulling.next().await? {
        match json {
            true => say_json_line(&step)?,
            false => show(&mut progress, &step),
        }
        last = Some(step);
    }
    progress.end();
    last.ok_or_else(|| anyhow!("the server told nothing of the pull"))
}

/// Shows a step.
fn show(progress: &mut Progress, step: &MeshTransfer) {
    progress.show(Step {
        name: &plain(&step.model),
        state: &step.state,
        bytes: step.bytes,
        total: step.total.unwrap_or(0),
        line: line(step),
    });
}

/// A step in one line: amount, speed, time left, source.
fn line(step: &MeshTransfer) -> String {
    let mut parts = vec![plain(&step.state)];
    match step.total {
        Some(total) => parts.push(format!("{} of {}", bytes(step.bytes), bytes(total))),
        None if step.bytes > 0 => parts.push(bytes(step.bytes)),
        None => {}
    }
    if step.state == "running" {
        parts.push(format!("{}/s", bytes(step.rate)));
        parts.extend(step.eta_secs.map(|secs| format!("{} left", span(secs))));
    }
    match &step.peers[..] {
        [] => {}
        [one] => parts.push(format!("from {}", plain(&short(one)))),
        several => parts.push(format!("from {}", count(several.len() as u64, "peer"))),
    }
    parts.extend(step.detail.as_deref().map(plain));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_amount_speed_time_left_and_source() {
        let mut step = MeshTransfer { state: "searching".to_owned(), ..MeshTransfer::default() };
        assert_eq!(line(&step), "searching");
        step = MeshTransfer {
            state: "running".to_owned(),
            bytes: 1 << 20,
            total: Some(4 << 20),
            rate: 1 << 20,
            eta_secs: Some(3),
            peers: vec!["ab".repeat(32)],
            ..step
        };
        let expected = "running, 1.0 MiB of 4.0 MiB, 1.0 MiB/s, 3s left, from abababab";
        assert_eq!(line(&step), expected);
        step.peers.push("cd".repeat(32));
        assert!(line(&step).ends_with("from 2 peers"));
    }
}
