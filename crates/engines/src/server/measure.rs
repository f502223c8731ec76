//! The memory that a server takes.

use std::fs;

use process::Handle;

/// The most lines of a `smaps_rollup` file that are looked at; such a file has a few hundred bytes.
const MOST_LINES: usize = 40;

/// The memory that the processes of a server take together, in bytes; pages that they share count once. `None` if
/// the system does not say.
pub(super) async fn resident(handle: &Handle) -> Option<u64> {
    let members = handle.members().await.ok()?;
    // The kernel sums up long page tables for this, so it must not run on a thread that serves
    // requests.
    let sum = move || members.into_iter().filter_map(of_process).reduce(|sum, more| sum + more);
    tokio::task::spawn_blocking(sum).await.ok()?
}

fn of_process(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    proportional(&text)
}

/// The proportional set size in a `smaps_rollup` file, in bytes.
fn proportional(text: &str) -> Option<u64> {
    let line = text.lines().take(MOST_LINES).find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proportional_size_is_read() {
        let text = "00400000-7ff [rollup]\nRss:   2000 kB\nPss:   1500 kB\nPss_Dirty: 3 kB\n";
        assert_eq!(proportional(text), Some(1500 * 1024));
        for bad in ["", "Pss: x kB", "Pss: 12", "Pss: 18446744073709551615 kB"] {
            assert_eq!(proportional(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_process_takes_something() {
        assert!(of_process(std::process::id()).unwrap() > 1_000_000);
    }
}
