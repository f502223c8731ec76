//! A Warren server whose backend is lent twice: to all, by a worker, and to a room, by a participant.

use std::{net::SocketAddr, path::Path};

use anyhow::{Result, ensure};

use super::{
    Part, Target, eventually,
    warren::{self, ANSWERS, Accounting, CONNECTS, MAX_CONCURRENT, clean},
};
use crate::{
    child::Process,
    http1::{self, Link},
    payload::MODEL,
    rooms,
};

/// What the line of the plain API is called.
pub(crate) const PLAIN: &str = "api";

/// What the line of the room is called.
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
    let up =
        eventually(CONNECTS, async || worker.check().is_err() || has_model(addr, &prefix).await);
    let up = up.await;
    worker.check()?;
    ensure!(up, "nobody has joined the room: {}", worker.last_words());
    let server = plain.parts.iter().filter(|part| part.name == "server").cloned();
    let parts = server.chain([Part { name: "worker", pids: vec![worker.pid()] }]).collect();
    let processes = vec![worker];
    Ok(Target { name: ROOM, key: None, prefix, addr, parts, processes, _dir: Some(dir) })
}

async fn has_model(addr: SocketAddr, prefix: &str) -> bool {
    let quoted = format!("\"{MODEL}\"");
    let path = format!("{prefix}/v1/models");
    let answer = http1::get(addr, &path, ANSWERS).await.unwrap_or_default();
    String::from_utf8_lossy(&answer).contains(&quoted)
}
