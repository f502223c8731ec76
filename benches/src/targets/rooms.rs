//! A Warren server whose backend is lent twice: to all, by a worker, and to a room, by a participant.

use std::{net::SocketAddr, path::Path};

use anyhow::{Result, ensure};

use super::{
    Part, Target, eventually, names_model,
    warren::{self, Accounting, CONNECTS, MAX_CONCURRENT, clean},
};
use crate::{child::Process, http1::Link, rooms};

pub(crate) const PLAIN: &str = "api";

pub(crate) const ROOM: &str = "room";

/// Starts all on `backend` and waits until the model can be asked for both ways. The second target
/// needs the first to be running.
pub(crate) async fn launch_both(program: &Path, backend: SocketAddr) -> Result<[Target; 2]> {
    let mut plain = warren::launch(program, backend, Accounting::Usual).await?;
    plain.name = PLAIN;
    let room = join(program, backend, &plain).await?;
    Ok([plain, room])
}

async fn join(program: &Path, backend: SocketAddr, plain: &Target) -> Result<Target> {
    let addr = plain.addr;
    let code = rooms::make(&mut Link::open(addr).await?).await?;
    let dir = tempfile::Builder::new().prefix("benches-room-").tempdir()?;
    let mut command = clean(program, dir.path());
    command.args(["room", "join", &code, "--nickname", "bench", "--no-specs"]);
    command.args(["--max-concurrent", MAX_CONCURRENT]);
    command.args(["--server", &format!("http://{addr}")]);
    command.args(["--backend", &format!("http://{backend}")]);
    let mut worker = Process::spawn(command, "warren-room-join", dir.path())?;
    worker.discard_output();
    let prefix = format!("/rooms/{code}");
    let models = format!("{prefix}/v1/models");
    let knows = async || worker.check().is_err() || names_model(addr, &models).await;
    let up = eventually(CONNECTS, knows).await;
    worker.check()?;
    ensure!(up, "nobody has joined the room: {}", worker.last_words());
    let server = plain.parts.iter().filter(|part| part.name == "server").cloned();
    let parts = server.chain([Part { name: "worker", pids: vec![worker.pid()] }]).collect();
    Ok(Target { prefix, parts, ..Target::new(ROOM, addr, vec![worker], Some(dir)) })
}
