//! The display of a lender: on a terminal a status line, elsewhere a line for each event.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use base::plain;

/// The display on standard error.
pub(super) struct Screen {
    terminal: bool,
    /// Whether the status line is drawn.
    drawn: bool,
    /// The count of answered requests when it was last written, and when that was.
    last_written: Option<(u64, Instant)>,
}

/// The shortest time between two status lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Returns to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[2K";

impl Screen {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), drawn: false, last_written: None }
    }

    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes a line that stays.
    pub(super) fn tell(&mut self, line: &str) {
        let clear = if std::mem::take(&mut self.drawn) { CLEAR } else { "" };
        // A closed standard error is no reason to stop lending.
        let _ = writeln!(stderr().lock(), "{clear}{}", plain::lines(line));
    }

    /// Shows the status: on a terminal as a changing line, elsewhere now and then if more requests were
    /// answered.
    pub(super) fn show(&mut self, line: &str, answered: u64) {
        if self.terminal {
            return self.draw(line);
        }
        let rested = self.last_written.is_none_or(|(_, at)| at.elapsed() >= EVERY);
        if rested && self.last_written.map_or(0, |(count, _)| count) < answered {
            self.last_written = Some((answered, Instant::now()));
            self.tell(line);
        }
    }

    fn draw(&mut self, line: &str) {
        self.drawn = true;
        let mut out = stderr().lock();
        let _ = write!(out, "{CLEAR}{}", plain::line(line)).and_then(|()| out.flush());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.drawn {
            self.tell("");
        }
    }
}
