//! Reaps ended processes: the first processes of sessions, which are reported to the daemon, and
//! orphans.

use rustix::process::{WaitOptions, WaitStatus, wait};

use super::events::Supervising;
use crate::{messages::Event, signal::Exit};

/// The most processes that are reaped before the next requests are handled.
const AT_ONCE: usize = 512;

impl Supervising {
    pub(super) fn reap(&mut self) {
        // Signals of one kind are merged, so their number says nothing: all ended children are asked for.
        while let Ok(Some(_)) = self.signals.read_signal() {}
        self.has_more = false;
        for _ in 0..AT_ONCE {
            let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) else { return };
            self.has_changed = true;
            self.reaped(pid.as_raw_pid().unsigned_abs(), status);
        }
        // The signals for the rest were read above, so nothing else would wake the loop.
        self.has_more = true;
    }

    fn reaped(&mut self, pid: u32, status: WaitStatus) {
        if !self.leaders.contains_key(&pid) {
            return;
        }
        // The process may have written a report before its end, which must be handled first.
        self.read_reports();
        let Some(id) = self.leaders.remove(&pid) else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.is_alive = false;
        session.exit = Some(exit(status));
        // Of a start that failed the daemon hears by its answer.
        if session.is_known && !self.is_holding {
            self.tell(&Event::Exited { id, exit: exit(status) }, Vec::new());
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}
