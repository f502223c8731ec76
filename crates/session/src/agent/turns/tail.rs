//! The last of what a process printed that nobody understands: mostly it says what went wrong.

use crate::agent::dialect::words;

/// How much is kept, in bytes.
pub(super) const MAX_TAIL: usize = 8 * 1024;

/// The last of what a process printed.
#[derive(Debug, Default)]
pub(super) struct Tail(String);

impl Tail {
    pub(super) fn push(&mut self, text: &str) {
        let from = text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL));
        self.0.push_str(&text[from..]);
        let from = self.0.ceil_char_boundary(self.0.len().saturating_sub(MAX_TAIL));
        self.0.drain(..from);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// A complaint, with the last lines after it.
    pub(super) fn explain(&self, complaint: &str) -> String {
        match self.0.trim() {
            "" => complaint.to_owned(),
            tail => {
                let from = tail.ceil_char_boundary(tail.len().saturating_sub(SHOWN));
                format!("{complaint} It printed: {}", words::notice(&tail[from..]))
            }
        }
    }
}

/// How much of it an error shows, in bytes.
const SHOWN: usize = 1024;
