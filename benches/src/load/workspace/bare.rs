//! A terminal's master, read in a loop with nothing beside it.

use std::{
    io::{Read, Write},
    path::Path,
    process::Child,
};

use anyhow::{Context, Result, ensure};
use pty_process::{
    Size,
    blocking::{Command, Pty, open},
};

use super::terminal::{COLUMNS, ROWS, Terminal};

const BUFFER: usize = 64 << 10;

pub(super) struct Bare {
    terminal: Pty,
    child: Child,
    buffer: Vec<u8>,
}

impl Bare {
    /// Runs a program, with these variables beside those of this process.
    pub(super) fn open(program: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Result<Self> {
        let (terminal, slave) = open().context("open a terminal")?;
        terminal.resize(Size::new(ROWS, COLUMNS))?;
        let command = Command::new(program).args(arguments).env("TERM", "xterm-256color");
        let child = command.envs(env.iter().copied()).spawn(slave);
        let child = child.with_context(|| format!("start {}", program.display()))?;
        Ok(Self { terminal, child, buffer: vec![0; BUFFER] })
    }

    pub(super) fn child(&self) -> u32 {
        self.child.id()
    }
}

impl Terminal for Bare {
    fn enter(&mut self, keys: &[u8]) -> Result<()> {
        Ok(self.terminal.write_all(keys)?)
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        // Reading fails once the terminal's program has ended.
        let read = self.terminal.read(&mut self.buffer).context("the program has ended")?;
        ensure!(read > 0, "the program has ended");
        take(&self.buffer[..read]);
        Ok(())
    }

    fn pids(&self) -> Vec<u32> {
        vec![std::process::id()]
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}
