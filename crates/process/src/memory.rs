//! Memory that this process has used and uses no longer goes back to the machine.
//!
//! The C library keeps what is freed for the next time, in a pool for each thread. After a peak that is
//! hundreds of MiB which nobody uses: the larger the blocks that were freed, the larger those that it keeps
//! from then on. So large blocks are always the machine's own and go back at once, and what a peak of small
//! ones leaves in the pools is given back shortly after it.
//!
//! [`give_back_memory`] is called where a runtime is made, so that a server and a worker do the same.

use std::{fs, sync::Once, thread, time::Duration};

use crate::unsafe_calls::{keep_no_large_blocks, trim_pools};

/// How often the size of the process is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// The process has grown by a peak, in bytes, when it is so much larger than it was at its smallest since
/// the pools were last trimmed.
const PEAK: u64 = 16 * 1024 * 1024;

/// From now on, memory that is not used goes back to the machine. It costs a thread that sleeps. Before the
/// first runtime is best: what other threads have freed until then stays with the process until the next peak.
pub fn give_back_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        keep_no_large_blocks();
        let watching = thread::Builder::new().name("memory".to_owned()).spawn(watch);
        if let Err(error) = watching {
            tracing::warn!(%error, "memory is not given back after peaks");
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, and nothing to wait for")]
fn watch() {
    let mut size = Size::default();
    loop {
        thread::sleep(LOOK);
        let Some(resident) = resident() else { return };
        if size.has_peaked(resident) {
            trim_pools();
            size.is_trimmed_to(self::resident().unwrap_or(resident));
        }
    }
}

/// How large the process was at its smallest since the pools were trimmed, in bytes.
#[derive(Default)]
struct Size {
    smallest: u64,
}

impl Size {
    fn has_peaked(&mut self, resident: u64) -> bool {
        self.smallest = self.smallest.min(resident);
        resident >= self.smallest + PEAK
    }

    fn is_trimmed_to(&mut self, resident: u64) {
        self.smallest = resident;
    }
}

/// The memory that this process occupies, in bytes.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn the_pools_are_trimmed_after_each_peak_and_not_for_what_is_in_use() {
        let mut size = Size::default();
        assert!(size.has_peaked(40 * MIB), "what the start has left");
        size.is_trimmed_to(30 * MIB);
        assert!(!size.has_peaked(45 * MIB));
        assert!(size.has_peaked(46 * MIB));
        size.is_trimmed_to(46 * MIB);
        assert!(!size.has_peaked(46 * MIB), "nothing could be given back");
        assert!(!size.has_peaked(20 * MIB));
        assert!(size.has_peaked(36 * MIB), "from its smallest");
    }

    #[test]
    fn the_size_of_this_process_is_known() {
        let before = resident().unwrap();
        let filled = vec![1_u8; 64 << 20];
        assert!(resident().unwrap() > before + 32 * MIB, "{}", filled.len());
    }
}
