//! How much memory a machine has.

use super::GIB;
use crate::{Root, root::value};

/// The machine's memory in GiB, or what its container may use of it, if that is less.
pub(super) fn total_ram_gb(root: &Root) -> Option<f64> {
    let all = root.text("proc/meminfo").and_then(|meminfo| mem_total(&meminfo));
    // A container sees its own limit there; the machine itself has no such file, or "max" in it.
    let limit = root.number("sys/fs/cgroup/memory.max").filter(|bytes| *bytes > 0);
    let limit = limit.map(|bytes| bytes as f64 / GIB);
    all.map(|all| limit.map_or(all, |limit| all.min(limit)))
}

fn mem_total(meminfo: &str) -> Option<f64> {
    let kib: u64 = value(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    #[test]
    fn memory_is_told_as_stock_peers_tell_it() {
        let made = MadeUp::new();
        made.file("proc/meminfo", "MemTotal:       24684092 kB\nMemFree:  1 kB\n");
        assert_eq!(total_ram_gb(&made.root()), Some(23.540584564208984));
        made.file("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(total_ram_gb(&made.root()), Some(23.540584564208984));
    }

    #[test]
    fn a_container_has_what_it_may_use() {
        let made = MadeUp::new();
        made.file("proc/meminfo", "MemTotal: 67108864 kB\n");
        made.file("sys/fs/cgroup/memory.max", "4294967296\n");
        assert_eq!(total_ram_gb(&made.root()), Some(4.0));
    }

    #[test]
    fn memory_that_is_not_told_is_unknown() {
        let made = MadeUp::new();
        assert_eq!(total_ram_gb(&made.root()), None);
        for nonsense in ["MemTotal: lots", "MemTotal: -1 kB", "MemTotal: 1 MB", "\u{0}"] {
            made.file("proc/meminfo", nonsense);
            assert_eq!(total_ram_gb(&made.root()), None, "{nonsense}");
        }
    }
}
