//! Finds the port on which a development server listens, in the server's output.
//!
//! A found port is a candidate, since text can say anything. The caller checks it against the ports
//! on which the session's processes really listen.
//!
//! - `plain`: the output without its escape sequences, line by line
//! - `line`: the ports that one line names

mod line;
mod plain;

use std::collections::VecDeque;

use plain::{LineEnd, Plain};

/// The most candidates that are kept; beyond that, the oldest are dropped.
pub const MAX_CANDIDATES: usize = 16;

/// Reads a session's output for ports.
#[derive(Debug, Default)]
pub struct Detector {
    plain: Plain,
    /// Each port once, oldest first.
    candidates: VecDeque<u16>,
}

impl Detector {
    /// A detector before any output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads more text, cut anywhere. Returns the first port that was not a candidate before. A
    /// port counts only when something follows its last digit.
    pub fn push(&mut self, text: &str) -> Option<u16> {
        let (mut rest, mut found) = (text, None);
        while !rest.is_empty() {
            let (ended, left) = self.plain.push(rest);
            rest = left;
            found = found.or(self.read(ended));
        }
        found
    }

    /// All candidates, oldest first.
    pub fn candidates(&self) -> impl Iterator<Item = u16> {
        self.candidates.iter().copied()
    }

    /// Reads the line so far, and makes room if the line has ended or is full.
    fn read(&mut self, ended: LineEnd) -> Option<u16> {
        let mut found = None;
        for port in line::ports(self.plain.line(), ended == LineEnd::Line) {
            if self.add(port) {
                found = found.or(Some(port));
            }
        }
        // Only after the line was read: this clears or cuts the line, and its ports would be lost.
        self.plain.make_room(ended);
        found
    }

    /// Adds a port; returns whether it is new.
    fn add(&mut self, port: u16) -> bool {
        if self.candidates.contains(&port) {
            return false;
        }
        if self.candidates.len() == MAX_CANDIDATES {
            self.candidates.pop_front();
        }
        self.candidates.push_back(port);
        true
    }
}

#[cfg(test)]
mod tests;
