//! A terminal that shows no typed keys and makes no lines of them: each key, Ctrl-D too, is there at once. During an
//! answer of a model the keys would stand among its lines.

use std::io::stdin;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal is quiet until this is dropped.
pub(crate) struct QuietTerminal(Option<Termios>);

impl QuietTerminal {
    pub(crate) fn new() -> Self {
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
