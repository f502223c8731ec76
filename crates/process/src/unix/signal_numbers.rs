//! The numbers of signals on this machine.

use rustix::process::Signal as Raw;

use crate::signal::Signal;

const ALL: [(Signal, Raw); 9] = [
    (Signal::Hangup, Raw::HUP),
    (Signal::Interrupt, Raw::INT),
    (Signal::Quit, Raw::QUIT),
    (Signal::Terminate, Raw::TERM),
    (Signal::Kill, Raw::KILL),
    (Signal::User1, Raw::USR1),
    (Signal::User2, Raw::USR2),
    (Signal::Continue, Raw::CONT),
    (Signal::Stop, Raw::STOP),
];

impl Signal {
    /// The signal's number on this machine.
    #[must_use]
    pub fn number(self) -> i32 {
        self.raw().as_raw()
    }

    pub(crate) fn raw(self) -> Raw {
        ALL.iter().find(|(signal, _)| *signal == self).map_or(Raw::KILL, |(_, raw)| *raw)
    }
}
