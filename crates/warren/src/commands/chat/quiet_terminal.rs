//! A terminal that does not show typed keys during an answer, where they would stand among its lines.
//!
//! It also keeps each key as it is, instead of making lines of them. What is typed ahead, Ctrl-D too, is then there for
//! the next line.

use std::io::stdin;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// While it lives, keys are shown only where a line is read.
pub(super) struct QuietTerminal(Option<Termios>);

impl QuietTerminal {
    pub(super) fn new() -> Self {
        let before = tcgetattr(stdin()).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &quiet);
        }
        Self(before)
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}
