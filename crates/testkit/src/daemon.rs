//! `warren serve` and `warren worker`: the real binary as processes of their own.

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    client::Client,
    process::ChildProcess,
    wait::{DEADLINE, eventually},
};

/// The secret by which workers of a [`Daemon`] are let in.
pub const WORKER_SECRET: &str = "let-me-in";

#[derive(Debug)]
#[must_use]
pub struct Serve {
    binary: PathBuf,
    listen: String,
    args: Vec<String>,
    data_dir: TempDir,
}

impl Serve {
    /// A server of the given binary on a port of its own, with a data directory of its own and
    /// [`WORKER_SECRET`].
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            listen: "127.0.0.1:0".to_owned(),
            args: vec!["--worker-secret".to_owned(), WORKER_SECRET.to_owned()],
            data_dir: TempDir::new().expect("a directory"),
        }
    }

    pub fn set(mut self, flag: &str, value: &str) -> Self {
        self.args.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    pub fn flag(mut self, flag: &str) -> Self {
        self.args.push(flag.to_owned());
        self
    }

    pub fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// Forgets all flags so far, the secret too.
    pub fn bare(mut self) -> Self {
        self.args.clear();
        self
    }

    pub fn data_dir(&self) -> &Path {
        self.data_dir.path()
    }

    /// Starts the process without waiting for it to listen.
    pub fn spawn(&self) -> ChildProcess {
        let data_dir = self.data_dir.path().display().to_string();
        let mut args = ["serve", "--listen", &self.listen, "--data-dir", &data_dir]
            .map(str::to_owned)
            .to_vec();
        args.extend(self.args.iter().cloned());
        ChildProcess::start_at(self.data_dir.path(), "server", &self.binary, &args)
    }

    pub async fn start(self) -> Daemon {
        let process = self.spawn();
        let address = process.listening("http").await;
        Daemon { serve: self, process, address }
    }
}

/// A running server. It derefs to its process.
#[derive(Debug)]
pub struct Daemon {
    serve: Serve,
    process: ChildProcess,
    address: SocketAddr,
}

impl Daemon {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn data_dir(&self) -> &Path {
        self.serve.data_dir()
    }

    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// A client with the admin token that the server has written into its data directory.
    pub fn admin(&self) -> Client {
        let token = std::fs::read_to_string(self.serve.data_dir().join("admin.token"));
        self.client().with_token(token.expect("an admin token").trim())
    }

    pub async fn health(&self) -> Value {
        self.client().get("/health").await.json()
    }

    pub async fn metrics(&self) -> String {
        self.client().get("/metrics").await.text()
    }

    pub async fn workers(&self) -> Vec<Value> {
        let answer = self.admin().get("/admin/workers").await.json();
        answer["workers"].as_array().cloned().unwrap_or_default()
    }

    pub async fn has_workers(&self, count: usize) {
        eventually("the number of workers", DEADLINE, async || self.workers().await.len() == count)
            .await;
    }

    pub async fn has_queued(&self, count: u64) {
        let queued = async || self.health().await["queue_depth"].as_u64() == Some(count);
        eventually("the queue depth", DEADLINE, queued).await;
    }

    /// Waits until nothing is queued and no worker holds a request.
    pub async fn is_idle(&self) {
        self.has_queued(0).await;
        let busy = |worker: &Value| worker["in_flight_count"] != 0;
        let idle = async || !self.workers().await.iter().any(busy);
        eventually("all slots being free", DEADLINE, idle).await;
    }

    /// Kills it and starts it again at the same address with the same data.
    pub async fn kill_and_restart(&mut self) {
        self.process.kill9().await;
        self.start_again().await;
    }

    /// Ends it in order and starts it again at the same address with the same data.
    pub async fn stop_and_restart(&mut self) {
        self.process.sigterm();
        assert_eq!(self.process.exit().await, Some(0), "it ends in order");
        self.start_again().await;
    }

    /// Starts it again at the same address with the same data, after its end.
    pub async fn start_again(&mut self) {
        self.serve.listen = self.address.to_string();
        self.process = self.serve.spawn();
        self.address = self.process.listening("http").await;
    }
}

impl Deref for Daemon {
    type Target = ChildProcess;

    fn deref(&self) -> &ChildProcess {
        &self.process
    }
}

impl DerefMut for Daemon {
    fn deref_mut(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// `warren worker`. It derefs to its process.
#[derive(Debug)]
pub struct WorkerProcess(ChildProcess);

impl WorkerProcess {
    /// A worker that lends one backend to one server, with further arguments.
    pub fn start(binary: &Path, server: &str, backend: &str, name: &str, args: &[&str]) -> Self {
        let mut all = vec!["worker", "--server", server, "--secret", WORKER_SECRET];
        all.extend(["--backend", backend, "--name", name]);
        all.extend(args);
        Self(ChildProcess::start(name, binary, &all))
    }
}

impl Deref for WorkerProcess {
    type Target = ChildProcess;

    fn deref(&self) -> &ChildProcess {
        &self.0
    }
}

impl DerefMut for WorkerProcess {
    fn deref_mut(&mut self) -> &mut ChildProcess {
        &mut self.0
    }
}
