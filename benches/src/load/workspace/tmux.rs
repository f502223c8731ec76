//! A terminal of tmux, with a client of it in another terminal.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::{
    bare::Bare,
    terminal::{COLUMNS, ROWS, Terminal},
};

/// Only the program is on the screen, and the server ends with its last client.
const SETTINGS: &str = "set -g status off\nset -g destroy-unattached on\n";

pub(super) struct Tmux {
    client: Bare,
    dir: TempDir,
}

impl Tmux {
    pub(super) fn open(program: &Path, arguments: &[&str]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("benches-tmux-").tempdir()?;
        let (settings, socket) = (dir.path().join("settings"), dir.path().join("socket"));
        std::fs::write(&settings, SETTINGS)?;
        let (settings, socket) = (settings.display().to_string(), socket.display().to_string());
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        let program = program.display().to_string();
        let mut all = vec!["-S", &socket, "-f", &settings, "new-session"];
        all.extend(["-x", &columns, "-y", &rows, &program]);
        all.extend(arguments);
        let client = Bare::open(Path::new("tmux"), &all, &[("LC_ALL", "C.UTF-8"), ("TMUX", "")])?;
        Ok(Self { client, dir })
    }

    fn tell(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("socket")).args(words);
        let output = command.stdin(Stdio::null()).output().context("start tmux")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tmux says {said}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Terminal for Tmux {
    fn enter(&mut self, keys: &[u8]) -> Result<()> {
        self.client.enter(keys)
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.client.read(take)
    }

    fn pids(&self) -> Vec<u32> {
        let server = self.tell(&["display-message", "-p", "#{pid}"]).ok();
        let server = server.and_then(|pid| pid.parse().ok());
        server.into_iter().chain([self.client.child()]).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ended = self.tell(&["kill-server"]);
    }
}
