//! The relay where most of the machines meet.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use testkit::{ChildProcess, Client, lab::http};

pub(crate) struct Relay {
    binary: PathBuf,
    data: TempDir,
    address: SocketAddr,
    process: tokio::sync::Mutex<ChildProcess>,
}

impl Relay {
    pub(crate) async fn new(binary: &Path) -> Self {
        let data = TempDir::new().expect("a directory");
        let process = spawn(binary, &data, ([127, 0, 0, 1], 0).into());
        let address = process.listening("ws").await;
        let process = tokio::sync::Mutex::new(process);
        Self { binary: binary.to_owned(), data, address, process }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) async fn kill(&self) {
        self.process.lock().await.kill9().await;
    }

    /// Starts it again, at the same address.
    pub(crate) async fn start(&self) {
        let process = spawn(&self.binary, &self.data, self.address);
        process.listening("ws").await;
        *self.process.lock().await = process;
    }

    /// A number of its metrics; `None` when it has no such metric.
    pub(crate) async fn metric(&self, name: &str) -> Option<u64> {
        let request = Client::new(self.address).request("GET", "/metrics");
        let (text, _) = http::send(self.address, &request).await.ok()?.text().await;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse().ok()
    }

    pub(crate) async fn resident_mib(&self) -> u64 {
        self.process.lock().await.resident_bytes() >> 20
    }

    /// Tells it to stop and returns its exit code.
    pub(crate) async fn stop(&self) -> Option<i32> {
        let mut process = self.process.lock().await;
        process.sigterm();
        process.exit().await
    }
}

fn spawn(binary: &Path, data: &TempDir, listen: SocketAddr) -> ChildProcess {
    let data = data.path().display().to_string();
    let listen = listen.to_string();
    let arguments = ["mesh", "relay", "--listen", &listen, "--data-dir", &data];
    ChildProcess::start("relay", binary, &arguments)
}
