//! Reaps ended processes: the first processes of sessions, which are reported to the daemon, and
//! orphans. At the end, ends all descendants of this process, whatever their session.

use std::time::{Duration, Instant};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{WaitOptions, WaitStatus, wait},
};

use super::events::Supervising;
use crate::{
    signal::Exit,
    unix::{cgroup, kernel::HAS_SUBREAPER, messages::Event},
};

/// The most processes that are reaped before the next requests are handled.
const AT_ONCE: usize = 512;

/// The longest time for ending everything. A process stuck in the kernel would otherwise hold it up
/// for ever.
const LONGEST_END: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Supervising {
    pub(super) fn reap(&mut self) {
        // Signals of one kind are merged, so their number says nothing: all ended children are asked for.
        self.signals.take();
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

    /// Kills all descendants until no child is left. This process is their sub-reaper, so it has
    /// children as long as there are descendants.
    pub(super) fn end_everything(&mut self) {
        let until = Instant::now() + LONGEST_END;
        // Again and again: a process may fork between the scan and its own end.
        while !self.reap_to_the_last() && Instant::now() < until {
            for directory in self.groups.directories() {
                cgroup::kill_below(&directory);
            }
            self.kill_members(|family| family.all().to_vec());
            self.sleep_until_somebody_ends();
        }
        self.groups.remove();
        // Its drop removes the socket, so that no daemon tries to take over nothing.
        self.keep = None;
    }

    /// Reaps ended children. Returns whether no descendant is left.
    fn reap_to_the_last(&mut self) -> bool {
        reap_all() && (HAS_SUBREAPER || self.look().all().is_empty())
    }

    fn sleep_until_somebody_ends(&self) {
        // Old signals must not end the wait below at once; a child that ends after this makes a new one.
        self.signals.take();
        if reap_all() && HAS_SUBREAPER {
            return;
        }
        if let Ok(pause) = LOOK_AGAIN.try_into() {
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&pause));
        }
    }
}

/// Reaps ended children. Returns whether none is left.
fn reap_all() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
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
