//! The relay where most of the machines meet.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use testkit::{ChildProcess, Client, lab::http};

/// What says where a relay listens.
const LISTENS: &str = "listening on ws://";

pub(crate) struct Relay {
    binary: PathBuf,
    data: TempDir,
    address: String,
    process: tokio::sync::Mutex<ChildProcess>,
}

impl Relay {
    /// Starts it for the first time.
    pub(crate) async fn new(binary: &Path) -> Self {
        let data = TempDir::new().expect("a directory");
        let process = spawn(binary, &data, "127.0.0.1:0");
        let address = listening(&process).await;
        let process = tokio::sync::Mutex::new(process);
        Self { binary: binary.to_owned(), data, address, process }
    }

    /// As machines dial it.
    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) async fn kill(&self) {
        self.process.lock().await.kill9().await;
    }

    /// Starts it again, at the same address.
    pub(crate) async fn start(&self) {
        let process = spawn(&self.binary, &self.data, &self.address);
        listening(&process).await;
        *self.process.lock().await = process;
    }

    /// A number of its metrics; `None` when it has no such metric.
    pub(crate) async fn metric(&self, name: &str) -> Option<u64> {
        let address = self.address.parse().expect("it was one");
        let request = Client::new(address).request("GET", "/metrics");
        let (text, _) = http::send(address, &request).await.ok()?.text().await;
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

fn spawn(binary: &Path, data: &TempDir, listen: &str) -> ChildProcess {
    let data = data.path().display().to_string();
    let arguments = ["mesh", "relay", "--listen", listen, "--data-dir", &data];
    ChildProcess::start("relay", binary, &arguments)
}

async fn listening(process: &ChildProcess) -> String {
    let line = process.line_with(LISTENS).await;
    let (_, address) = line.split_once(LISTENS).expect("the line has it");
    address.trim().to_owned()
}
