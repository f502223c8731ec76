//! A terminal of a daemon, with one client attached.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{
    Daemon,
    client::{Client, ServerMessage},
    terminal::Terminal,
};

pub(super) struct Viewer {
    client: Client,
    session: String,
    pids: Vec<u32>,
    /// The first screen, until it is read.
    first: Option<String>,
    resyncs: u64,
}

impl Viewer {
    /// Runs a program in a session, and attaches to it.
    pub(super) fn open(daemon: &Daemon, program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut client = Client::open(daemon)?;
        let program = program.to_str().context("a program whose name is no text")?;
        let session = client.run(program, arguments)?;
        let first = client.attach(&session)?;
        Ok(Self { client, session, pids: daemon.pids(), first: Some(first), resyncs: 0 })
    }
}

impl Terminal for Viewer {
    fn enter(&mut self, keys: &[u8]) -> Result<()> {
        self.client.enter(&self.session, keys)
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        if let Some(first) = self.first.take() {
            take(first.as_bytes());
            return Ok(());
        }
        match self.client.next()? {
            ServerMessage::Output(output) => take(output),
            ServerMessage::Text(told) => {
                let code = &told["notice"]["code"];
                ensure!(code != "output_backpressure", "the daemon gave this client up");
                if told["type"] == "session_snapshot" {
                    self.resyncs += 1;
                    take(told["data"].as_str().unwrap_or_default().as_bytes());
                }
            }
        }
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        self.pids.clone()
    }

    fn resyncs(&self) -> u64 {
        self.resyncs
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        // What it still writes is not waited for any longer than for an answer.
        let _killed = self.client.kill(&self.session);
    }
}
