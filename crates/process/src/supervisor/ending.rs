//! The end of all descendants of this process, whatever their session.

use std::time::{Duration, Instant};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{WaitOptions, wait},
};

use super::events::Supervising;
use crate::cgroup;

/// The longest time for ending everything. A process stuck in the kernel would otherwise hold it up
/// for ever.
const LONGEST: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(20);

impl Supervising {
    /// Kills all descendants until no child is left. This process is their sub-reaper, so it has
    /// children as long as there are descendants.
    pub(super) fn end_everything(&mut self) {
        let until = Instant::now() + LONGEST;
        // Again and again: a process may fork between the scan and its own end.
        while !reap_all() && Instant::now() < until {
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

    fn sleep_until_somebody_ends(&self) {
        // Old signals must not end the wait below at once; a child that ends after this makes a new one.
        while let Ok(Some(_)) = self.signals.read_signal() {}
        if reap_all() {
            return;
        }
        if let Ok(again) = AGAIN.try_into() {
            let _ = poll(&mut [PollFd::new(&self.signals, PollFlags::IN)], Some(&again));
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
