//! What whoever lends sees: on a terminal a line that changes, elsewhere a line for each thing.

use std::{
    io::{IsTerminal, Write, stderr},
    time::{Duration, Instant},
};

use base::plain;

/// Standard error, as somebody looks at it.
pub(super) struct Screen {
    terminal: bool,
    /// Whether the line that changes stands there.
    drawn: bool,
    /// How many requests were answered when that was last told, and when that was.
    told: Option<(u64, Instant)>,
}

/// How often it is told at most how it stands, where nothing can be drawn.
const EVERY: Duration = Duration::from_secs(10);

/// Goes to the beginning of the line and takes away what is there.
const CLEAR: &str = "\r\x1b[2K";

impl Screen {
    pub(super) fn new() -> Self {
        Self { terminal: stderr().is_terminal(), drawn: false, told: None }
    }

    /// Whether it is a terminal.
    pub(super) const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Tells something that stays.
    pub(super) fn tell(&mut self, line: &str) {
        let clear = if std::mem::take(&mut self.drawn) { CLEAR } else { "" };
        // That nobody looks is no reason not to lend.
        let _ = writeln!(stderr().lock(), "{clear}{}", plain::lines(line));
    }

    /// Shows how it stands, when so many requests were answered: on a terminal as the line that
    /// changes, elsewhere now and then, when there is something new.
    pub(super) fn show(&mut self, line: &str, answered: u64) {
        if self.terminal {
            return self.draw(line);
        }
        let rested = self.told.is_none_or(|(_, at)| at.elapsed() >= EVERY);
        if rested && self.told.map_or(0, |(told, _)| told) < answered {
            self.told = Some((answered, Instant::now()));
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
