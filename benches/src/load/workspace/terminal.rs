//! A terminal with one of the suite's own programs in it, however it is reached.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{Daemon, bare, find::Find, tcp, tmux, ttyd, viewer};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TerminalKind {
    /// By its master, in this process.
    Bare,
    /// None: the program at the far end of a connection.
    Tcp,
    /// By a client of tmux in a terminal of its own.
    Tmux,
    Ttyd,
    Warren(Daemon),
}

/// An open terminal. Dropping it ends its program.
pub(super) trait Terminal: Send {
    fn enter(&mut self, keys: &[u8]) -> Result<()>;

    /// Waits for the next output and gives it to `take`, maybe in several pieces.
    fn read(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// The processes whose cost is measured.
    fn pids(&self) -> Vec<u32>;

    /// How often the screen was sent again because output was left out.
    fn resyncs(&self) -> u64 {
        0
    }
}

pub(super) const COLUMNS: u16 = 80;
pub(super) const ROWS: u16 = 24;

/// How long a helper program may take to start listening.
pub(super) const COMES: Duration = Duration::from_secs(10);

/// Opens one in which the suite runs with these arguments.
pub(super) fn open(way: &TerminalKind, arguments: &[&str]) -> Result<Box<dyn Terminal>> {
    let program = program()?;
    Ok(match way {
        TerminalKind::Bare => Box::new(bare::Bare::open(&program, arguments, &[])?),
        TerminalKind::Tcp => Box::new(tcp::Tcp::open(&program, arguments)?),
        TerminalKind::Tmux => Box::new(tmux::Tmux::open(&program, arguments)?),
        TerminalKind::Ttyd => Box::new(ttyd::Ttyd::open(&program, arguments)?),
        TerminalKind::Warren(daemon) => {
            Box::new(viewer::Viewer::open(daemon, &program, arguments)?)
        }
    })
}

pub(super) fn program() -> Result<PathBuf> {
    std::env::current_exe().context("where is this program?")
}

/// Reads until this word has come; how many bytes that were.
pub(super) fn until(terminal: &mut dyn Terminal, word: &'static str) -> Result<u64> {
    let (mut find, mut bytes, mut found) = (Find::new(word), 0, false);
    while !found {
        terminal.read(&mut |piece| {
            bytes += piece.len() as u64;
            found |= find.feed(piece);
        })?;
    }
    Ok(bytes)
}
