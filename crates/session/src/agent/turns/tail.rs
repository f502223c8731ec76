//! The end of a process's output that is not JSON. It usually says what went wrong.

use serde::{Deserialize, Serialize};

use crate::agent::dialect::words;

/// The most bytes that are kept.
pub(super) const MAX_TAIL: usize = 8 * 1024;

/// The end of a process's output that is not JSON, and of its error output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Tail(String);

impl Tail {
    pub(super) fn push(&mut self, text: &str) {
        // Cut before it is appended: a long text must not be held twice.
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

    /// An error, followed by the last output.
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

/// The most bytes of output that an error shows.
const SHOWN: usize = 1024;
