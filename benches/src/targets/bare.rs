//! The pair of relays without features: what two hops cost at least. Both are this program.

use std::{net::SocketAddr, path::Path};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::{
    Target, eventually, names_model,
    warren::{CONNECTS, LISTENS},
};
use crate::{child::Process, cli::Kind};

/// Starts both before `backend` and waits until it can be asked.
pub(crate) async fn launch(backend: SocketAddr) -> Result<Target> {
    let program = std::env::current_exe()?;
    let dir = tempfile::Builder::new().prefix("benches-bare-").tempdir()?;
    let mut front = start(&program, &["bare-front"], dir.path())?;
    let link = front.line(LISTENS).await?;
    let addr = front.listening(LISTENS).await?;
    let back = start(&program, &["bare-back", &link, &backend.to_string()], dir.path())?;
    let up = eventually(CONNECTS, async || names_model(addr, "/v1/models").await).await;
    ensure!(up, "the bare pair has no backend: {} | {}", front.last_words(), back.last_words());
    let mut target = Target::new(Kind::Bare.name(), addr, vec![front, back], Some(dir));
    target.parts.last_mut().context("two parts")?.name = "worker";
    Ok(target)
}

fn start(program: &Path, arguments: &[&str], dir: &Path) -> Result<Process> {
    let mut command = Command::new(program);
    command.args(arguments);
    Process::spawn(command, arguments[0], dir)
}
