//! The events of a run, line by line, when somebody wants to read them.

use std::{fmt::Display, time::Duration};

#[derive(Debug, Default)]
pub(crate) struct Trace {
    is_on: bool,
    lines: Vec<String>,
}

/// The most lines of a trace. The last ones are kept: there the fault shows.
const MOST_LINES: usize = 20_000;

impl Trace {
    pub(crate) fn on() -> Self {
        Self { is_on: true, lines: Vec::new() }
    }

    /// Adds a line, which is only made where it is wanted.
    pub(crate) fn say<T: Display>(&mut self, now: Duration, line: impl FnOnce() -> T) {
        if !self.is_on {
            return;
        }
        if self.lines.len() == MOST_LINES {
            self.lines.drain(..MOST_LINES / 2);
        }
        self.lines.push(format!("{:>12.3} {}", now.as_secs_f64(), line()));
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }
}
