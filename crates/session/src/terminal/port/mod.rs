//! Which port a development server listens on, found in what it prints.
//!
//! What is found is a candidate: text can say anything. The caller confirms it against the ports
//! that the session's processes really listen on.
//!
//! - `plain`: output without its escape sequences, line by line
//! - `line`: the ports that one line names

mod line;
mod plain;

use std::collections::VecDeque;

use plain::{LineEnd, Plain};

/// How many candidates are kept: of more, the oldest are dropped.
pub const MAX_CANDIDATES: usize = 16;

/// Reads a session's output for ports.
#[derive(Debug, Default)]
pub struct Detector {
    plain: Plain,
    /// Without repetition, the oldest first.
    candidates: VecDeque<u16>,
}

impl Detector {
    /// Before any output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads on, wherever the text was cut. The first port that was not a candidate before; a port
    /// counts when something follows its last digit.
    pub fn push(&mut self, text: &str) -> Option<u16> {
        let (mut rest, mut found) = (text, None);
        while !rest.is_empty() {
            let (ended, left) = self.plain.push(rest);
            rest = left;
            found = found.or(self.read(ended));
        }
        found
    }

    /// All candidates, the oldest first.
    pub fn candidates(&self) -> impl Iterator<Item = u16> {
        self.candidates.iter().copied()
    }

    /// Reads the line as far as it has come, and makes room where it has ended or is full.
    fn read(&mut self, ended: LineEnd) -> Option<u16> {
        let mut found = None;
        for port in line::ports(self.plain.line(), ended == LineEnd::Line) {
            if self.add(port) {
                found = found.or(Some(port));
            }
        }
        self.plain.make_room(ended);
        found
    }

    /// Whether it is new.
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
