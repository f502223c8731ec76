//! Warren servers that are peers, and a relay between them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{
    Target, eventually, free_address, names_model,
    warren::{CONNECTS, LISTENS, clean, lend},
};
use crate::child::Process;

pub(crate) const OWN: &str = "own";

pub(crate) const PEER: &str = "peer";

const SECRET: &str = "bench-secret-of-the-mesh";

/// Within this time a server tells a relay about a new model.
const TOLD: Duration = Duration::from_secs(7);

/// How long a model may take to arrive.
const ARRIVES: Duration = Duration::from_secs(300);

pub(crate) async fn relay(program: &Path) -> Result<Target> {
    let dir = tempfile::Builder::new().prefix("benches-relay-").tempdir()?;
    let mut command = clean(program, dir.path());
    command.args(["mesh", "relay", "--listen", "127.0.0.1:0", "--accept-unsigned"]);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut process = Process::spawn(command, "warren-mesh-relay", dir.path())?;
    let addr = process.listening(LISTENS).await?;
    Ok(Target::new("relay", addr, vec![process], Some(dir)))
}

/// Two servers that are peers on the LAN, or at a relay only: the first has a worker on `backend`, the
/// second has nobody but the first.
pub(crate) async fn pair(
    program: &Path,
    backend: SocketAddr,
    relay: Option<SocketAddr>,
) -> Result<[Target; 2]> {
    let (one, other) = match relay {
        None => {
            let lan = free_address()?.to_string();
            (["--mesh-listen".to_owned(), lan.clone()], ["--mesh-peer".to_owned(), lan])
        }
        Some(relay) => {
            let at = ["--mesh-relay".to_owned(), format!("ws://{relay}")];
            (at.clone(), at)
        }
    };
    let (mut lends, addr, dir) = serve(program, None, &one).await?;
    let worker = lend(program, dir.path(), addr, backend, SECRET)?;
    knows(addr, &mut lends).await?;
    let own = Target::new(OWN, addr, vec![lends, worker], Some(dir)).rewriting();
    if relay.is_some() {
        // The second server asks the relay for peers once when it joins, and then not for a minute.
        tokio::time::sleep(TOLD).await;
    }
    let (mut asks, addr, dir) = serve(program, None, &other).await?;
    knows(addr, &mut asks).await?;
    Ok([own, Target::new(PEER, addr, vec![asks], Some(dir)).rewriting()])
}

/// A server that takes part in the mesh, and has neither worker nor peers.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) lan: SocketAddr,
    addr: SocketAddr,
    program: PathBuf,
    process: Process,
    dir: TempDir,
}

impl Node {
    /// Starts one whose directory is under `place`. `offers`: the folder of the models that it passes on.
    /// `peer`: the only peer that it knows.
    pub(crate) async fn start(
        program: &Path,
        place: &Path,
        offers: Option<&Path>,
        peer: Option<SocketAddr>,
    ) -> Result<Self> {
        let lan = free_address()?;
        let mut arguments = vec!["--mesh-listen".to_owned(), lan.to_string()];
        if let Some(folder) = offers {
            arguments.extend(["--mesh-models".to_owned(), folder.display().to_string()]);
        }
        if let Some(peer) = peer {
            arguments.extend(["--mesh-peer".to_owned(), peer.to_string()]);
        }
        let (process, addr, dir) = serve(program, Some(place), &arguments).await?;
        Ok(Self { lan, addr, program: program.to_owned(), process, dir })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Pulls a model as its users do; how long that took. The model is then forgotten.
    pub(crate) async fn pull(&self, model: &str) -> Result<Duration> {
        let mut command = clean(&self.program, self.dir.path());
        command.args(["mesh", "pull", model, "--server", &format!("http://{}", self.addr)]);
        command.arg("--data-dir").arg(self.data()).kill_on_drop(true);
        let begun = Instant::now();
        let output = tokio::time::timeout(ARRIVES, command.output()).await;
        let took = begun.elapsed();
        let output = output.context("no model in time")?.context("start warren mesh pull")?;
        let words = String::from_utf8_lossy(&output.stderr);
        let own = self.process.last_words();
        ensure!(output.status.success(), "no model was pulled: {words} | {own}");
        self.forget(model)?;
        Ok(took)
    }

    pub(crate) async fn stop(self) {
        self.process.stop().await;
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn forget(&self, model: &str) -> Result<()> {
        let at = self.data().join("models").join(model);
        std::fs::remove_dir_all(&at).with_context(|| format!("remove {}", at.display()))
    }
}

async fn serve(
    program: &Path,
    place: Option<&Path>,
    arguments: &[String],
) -> Result<(Process, SocketAddr, TempDir)> {
    let place = place.map_or_else(std::env::temp_dir, Path::to_owned);
    let dir = tempfile::Builder::new().prefix("benches-peer-").tempdir_in(place)?;
    let mut command = clean(program, dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--worker-secret", SECRET]);
    command.args(["--mesh-share", "anyone"]).args(arguments);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut process = Process::spawn(command, "warren-peer", dir.path())?;
    let addr = process.listening(LISTENS).await?;
    Ok((process, addr, dir))
}

/// Waits until a server has the model, of its worker or a peer.
async fn knows(addr: SocketAddr, server: &mut Process) -> Result<()> {
    let up = eventually(CONNECTS, async || names_model(addr, "/v1/models").await).await;
    server.check()?;
    ensure!(up, "the server has nobody for the model: {}", server.last_words());
    Ok(())
}
