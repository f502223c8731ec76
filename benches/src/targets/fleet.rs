//! Servers that act as one over a NATS server, each with a worker or without.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use tempfile::TempDir;
use tokio::{net::TcpStream, process::Command};

use super::{Target, eventually, free_address, names_model, warren};
use crate::child::Process;

/// How long NATS may take to listen.
const READY: Duration = Duration::from_secs(10);

/// The worker secret of all servers of a fleet.
const SECRET: &str = "the-secret-of-this-fleet";
/// The administrator's token.
pub(crate) const ADMIN: &str = "wa_the-owner-of-this-fleet";

/// The servers, and what they meet at.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) servers: Vec<Target>,
    nats: Process,
    _dir: TempDir,
}

/// The program of NATS, if it is there: the one that `NATS_SERVER` names, or one in the path.
pub(crate) async fn find() -> Option<PathBuf> {
    let given = std::env::var_os("NATS_SERVER").map(PathBuf::from);
    let program = given.unwrap_or_else(|| "nats-server".into());
    let version = Command::new(&program).arg("--version").output().await;
    version.is_ok_and(|output| output.status.success()).then_some(program)
}

/// Starts servers of these names. Those for which it is said get a worker that lends them `backend`.
pub(crate) async fn launch(
    (nats, program): (&Path, &Path),
    backend: SocketAddr,
    servers: &[(&'static str, bool)],
) -> Result<Fleet> {
    let dir = tempfile::Builder::new().prefix("benches-fleet-").tempdir()?;
    let (nats, at) = start_nats(nats, dir.path()).await?;
    let mut fleet = Fleet { servers: Vec::new(), nats, _dir: dir };
    for &(name, lends) in servers {
        let server = start_server(program, name, at, lends.then_some(backend)).await?;
        fleet.servers.push(server);
    }
    if servers.iter().any(|(_, lends)| *lends) {
        fleet.knows_model().await?;
    }
    Ok(fleet)
}

impl Fleet {
    /// Waits until each server serves the backend's model.
    async fn knows_model(&mut self) -> Result<()> {
        for server in &mut self.servers {
            let addr = server.addr;
            let knows = async || names_model(addr, "/v1/models").await;
            let knows = eventually(warren::CONNECTS, knows).await;
            server.check()?;
            ensure!(knows, "{} does not know the model of the other servers", server.name);
        }
        Ok(())
    }

    pub(crate) async fn stop(self) {
        for server in self.servers {
            server.stop().await;
        }
        self.nats.stop().await;
    }
}

async fn start_nats(program: &Path, dir: &Path) -> Result<(Process, SocketAddr)> {
    let addr = free_address()?;
    let mut command = Command::new(program);
    command.args(["-js", "-a", "127.0.0.1", "-p", &addr.port().to_string(), "-sd"]).arg(dir);
    let mut process = Process::spawn(command, "nats-server", dir)?;
    let up = eventually(READY, async || {
        process.check().is_err() || TcpStream::connect(addr).await.is_ok()
    });
    let up = up.await;
    process.check()?;
    if !up {
        bail!("NATS does not listen: {}", process.last_words());
    }
    Ok((process, addr))
}

async fn start_server(
    program: &Path,
    name: &'static str,
    nats: SocketAddr,
    backend: Option<SocketAddr>,
) -> Result<Target> {
    let dir = warren::directory()?;
    let mut command = warren::clean(program, dir.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--worker-secret", SECRET]);
    command.args(["--admin-token", ADMIN, "--server-name", name]);
    command.args(["--cluster", &format!("nats://{nats}")]);
    command.arg("--data-dir").arg(dir.path().join("data"));
    let mut server = Process::spawn(command, name, dir.path())?;
    let addr = server.listening(warren::LISTENS).await?;
    let mut processes = vec![server];
    if let Some(backend) = backend {
        processes.push(warren::lend(program, dir.path(), addr, backend, SECRET)?);
    }
    Ok(Target::new(name, addr, processes, Some(dir)))
}

/// The secret of the workers.
pub(crate) const fn secret() -> &'static str {
    SECRET
}
