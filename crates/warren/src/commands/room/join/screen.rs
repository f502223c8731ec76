//! What whoever lends sees: on a terminal a line that changes, elsewhere a line for each thing.

use std::io::{IsTerminal, Write, stderr};

/// Standard error, as somebody looks at it.
pub(super) struct Screen {
    terminal: bool,
    /// Whether the line that changes stands there.
    drawn: bool,
}

/// Goes to the beginning of the line and takes away what is there.
const CLEAR: &str = "\r\x1b[2K";

impl Screen {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), drawn: false }
    }

    /// Whether it is a terminal.
    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Tells something that stays.
    pub(super) fn tell(&mut self, line: &str) {
        let clear = if std::mem::take(&mut self.drawn) { CLEAR } else { "" };
        // That nobody looks is no reason not to lend.
        let _ = writeln!(stderr().lock(), "{clear}{line}");
    }

    /// Draws the line that changes; only on a terminal.
    pub(super) fn draw(&mut self, line: &str) {
        if !self.terminal {
            return;
        }
        self.drawn = true;
        let mut out = stderr().lock();
        let _ = write!(out, "{CLEAR}{line}").and_then(|()| out.flush());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn {
            self.tell("");
        }
    }
}
