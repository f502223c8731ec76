//! Returns memory that this process no longer uses to the machine.
//!
//! The C library keeps freed memory for later use, in a pool for each thread. After a peak this can
//! be hundreds of unused MiB: the larger the freed blocks, the larger the blocks that it keeps from
//! then on. So large blocks are mapped one by one and returned at once, and the memory that a peak
//! of small blocks leaves in the pools is released shortly afterwards.
//!
//! [`give_back_memory`] is called wherever a runtime is created, so that servers and workers behave
//! alike.

use std::{sync::Once, thread, time::Duration};

use procfs_core::{FromRead, process::Status};

use super::unsafe_calls::{keep_no_large_blocks, trim_pools};

/// How often the size of the process is checked.
const LOOK: Duration = Duration::from_secs(2);

/// A process has had a peak if its size has grown by this many bytes over its smallest size since
/// the last trim.
const PEAK: u64 = 16 * 1024 * 1024;

/// The longest wait between two trims, in checks. The pools are trimmed again after waits that
/// double, since memory that was in use during a trim may be freed soon after it.
const LONGEST: u32 = 32;

/// Makes the process return unused memory to the machine from now on. This costs one sleeping
/// thread. Call it before the first runtime starts: memory that other threads freed earlier stays
/// with the process until the next peak.
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
        if size.note_look(resident) {
            trim_pools();
            size.note_trimmed(self::resident().unwrap_or(resident));
        }
    }
}

#[derive(Default)]
struct Size {
    /// The smallest size of the process since the pools were trimmed, in bytes.
    smallest: u64,
    /// The number of checks since the pools were trimmed.
    looks: u32,
    /// The number of checks until the pools are trimmed again, whatever the size.
    wait: u32,
}

impl Size {
    /// Notes the size at a look. Returns whether to trim now.
    fn note_look(&mut self, resident: u64) -> bool {
        self.smallest = self.smallest.min(resident);
        self.looks += 1;
        let has_peaked = resident >= self.smallest + PEAK;
        if has_peaked {
            self.wait = 0;
        }
        has_peaked || self.looks >= self.wait
    }

    fn note_trimmed(&mut self, resident: u64) {
        self.smallest = resident;
        self.looks = 0;
        // Idle processes are trimmed less and less often: a trim costs time and mostly finds nothing.
        self.wait = (self.wait * 2).clamp(1, LONGEST);
    }
}

/// The memory that this process occupies, in bytes.
fn resident() -> Option<u64> {
    let kib = Status::from_file("/proc/self/status").ok()?.vmrss?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// The number of checks until the pools are trimmed, if the process keeps this size.
    fn looks(size: &mut Size, resident: u64) -> u32 {
        let looks = (1..1000).find(|_| size.note_look(resident));
        size.note_trimmed(resident);
        looks.unwrap()
    }

    #[test]
    fn the_pools_are_trimmed_at_each_peak() {
        let mut size = Size::default();
        assert_eq!(looks(&mut size, 40 * MIB), 1, "what the start has left");
        for _ in 0..10 {
            looks(&mut size, 40 * MIB);
        }
        assert!(!size.note_look(55 * MIB));
        assert!(!size.note_look(20 * MIB));
        assert!(size.note_look(36 * MIB), "from its smallest");
    }

    /// A check may happen during the peak, while everything is still in use.
    #[test]
    fn memory_freed_after_the_peak_is_given_back_too() {
        let mut size = Size::default();
        let waits: Vec<_> = (0..8).map(|_| looks(&mut size, 300 * MIB)).collect();
        assert_eq!(waits, [1, 1, 2, 4, 8, 16, 32, 32]);
        assert_eq!(looks(&mut size, 316 * MIB), 1);
        assert_eq!(looks(&mut size, 316 * MIB), 1, "and soon again");
    }

    #[test]
    fn the_size_of_this_process_is_known() {
        let before = resident().unwrap();
        let filled = vec![1_u8; 64 << 20];
        assert!(resident().unwrap() > before + 32 * MIB, "{}", filled.len());
    }
}
