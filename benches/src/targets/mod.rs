//! The targets: ways to the same backend.
//!
//! - [`direct`]: no way at all
//! - [`nginx`]: a plain reverse proxy
//! - [`bare`]: a pair of relays without features
//! - [`warren`]: a server and a worker, as two processes or one
//! - [`affinity`]: a server and four workers with caches of prompts
//! - [`fleet`]: servers that act as one over NATS
//! - [`postgres`]: the database that several servers share
//! - [`engines`]: model engines that a server has started
//! - [`rooms`]: a server with rooms
//! - [`mesh`]: servers that are peers, and a relay
//! - [`workspace`]: a server with terminals and agents
//! - [`ways`]: proxies between the members of a cluster

pub(crate) mod affinity;
pub(crate) mod bare;
pub(crate) mod direct;
pub(crate) mod engines;
pub(crate) mod fleet;
pub(crate) mod mesh;
pub(crate) mod nginx;
pub(crate) mod postgres;
pub(crate) mod rooms;
pub(crate) mod warren;
pub(crate) mod ways;
pub(crate) mod workspace;

use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;
use warren::Accounting;

use crate::{
    child::Process,
    cli::{Kind, Options},
    http1,
    payload::MODEL,
    proc, report,
};

/// A target that takes requests. Dropping it ends its processes.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// The key that it asks of its clients, if it does.
    pub(crate) key: Option<String>,
    /// The prefix of each request's path: that of a room, or nothing.
    pub(crate) prefix: String,
    /// Whether it serialises events again, so that only their words are compared.
    pub(crate) rewrites: bool,
    pub(crate) addr: SocketAddr,
    pub(crate) parts: Vec<Part>,
    processes: Vec<Process>,
    _dir: Option<TempDir>,
}

#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// `server` (what the clients talk to) or `worker`.
    pub(crate) name: &'static str,
    pub(crate) pids: Vec<u32>,
}

impl Target {
    fn new(
        name: &'static str,
        addr: SocketAddr,
        processes: Vec<Process>,
        dir: Option<TempDir>,
    ) -> Self {
        let part = |process: &Process| Part { name: "server", pids: vec![process.pid()] };
        let parts = processes.iter().map(part).collect();
        Self {
            name,
            key: None,
            prefix: String::new(),
            rewrites: false,
            addr,
            parts,
            processes,
            _dir: dir,
        }
    }

    /// Says that it serialises events again, or is compared with one that does.
    fn rewriting(self) -> Self {
        Self { rewrites: true, ..self }
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.parts.iter().flat_map(|part| part.pids.iter().copied()).collect()
    }

    pub(crate) fn resident(&self, part: &str) -> Option<u64> {
        let part = self.parts.iter().find(|at| at.name == part)?;
        proc::resident(&part.pids).ok()
    }

    /// An error when one of its processes has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    pub(crate) async fn stop(mut self) {
        while let Some(process) = self.processes.pop() {
            process.stop().await;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Launcher {
    backend: SocketAddr,
    kinds: Vec<Kind>,
    nginx: Option<PathBuf>,
    warren: Option<PathBuf>,
}

impl Launcher {
    /// Looks for the programs needed; says which targets are left out and why.
    pub(crate) async fn find(options: &Options, backend: SocketAddr) -> Result<Self> {
        let mut launcher = Self { backend, kinds: Vec::new(), nginx: None, warren: None };
        if options.targets(Kind::Nginx) {
            launcher.nginx = nginx::find().await;
            if launcher.nginx.is_none() {
                report::note("nginx is not installed: left out");
            }
        }
        if options.targets(Kind::Warren) || options.targets(Kind::Up) {
            launcher.warren = Some(warren::find(options.warren.as_deref()).await?);
        }
        let there = |kind: &Kind| match kind {
            Kind::Direct => options.targets(Kind::Direct),
            Kind::Nginx => launcher.nginx.is_some(),
            Kind::Bare => options.targets(Kind::Bare),
            Kind::Warren => options.targets(Kind::Warren),
            Kind::Up => options.targets(Kind::Up),
        };
        launcher.kinds = Kind::ALL.into_iter().filter(there).collect();
        Ok(launcher)
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The program of Warren, if it is measured.
    pub(crate) fn warren(&self) -> Option<&PathBuf> {
        self.warren.as_ref().filter(|_| self.kinds.contains(&Kind::Warren))
    }

    /// Starts one, ready for `connections` at once.
    pub(crate) async fn launch(&self, kind: Kind, connections: u32) -> Result<Target> {
        match (kind, &self.nginx, &self.warren) {
            (Kind::Nginx, Some(program), _) => {
                nginx::launch(program, self.backend, connections).await
            }
            (Kind::Warren, _, Some(program)) => {
                warren::launch(program, self.backend, Accounting::Usual).await
            }
            (Kind::Up, _, Some(program)) => warren::launch_up(program, self.backend).await,
            (Kind::Bare, ..) => bare::launch(self.backend).await,
            _ => Ok(direct::launch(self.backend)),
        }
    }

    pub(crate) async fn launch_all(&self, connections: u32) -> Result<Vec<Target>> {
        let mut targets = Vec::new();
        for &kind in &self.kinds {
            targets.push(self.launch(kind, connections).await?);
        }
        Ok(targets)
    }
}

/// Whether what a server answers at this path names the backend's model.
async fn names_model(addr: SocketAddr, path: &str) -> bool {
    let answer = http1::get(addr, path, warren::ANSWERS).await.unwrap_or_default();
    String::from_utf8_lossy(&answer).contains(&format!("\"{MODEL}\""))
}

/// An address of this machine that nobody listens on now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
    Ok(listener.local_addr()?)
}

/// Asks again and again, until it is so or `limit` has passed; returns whether it is.
pub(crate) async fn eventually(limit: Duration, mut so: impl AsyncFnMut() -> bool) -> bool {
    const AGAIN: Duration = Duration::from_millis(20);
    let asking = async {
        while !so().await {
            tokio::time::sleep(AGAIN).await;
        }
    };
    tokio::time::timeout(limit, asking).await.is_ok()
}
