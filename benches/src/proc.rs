//! The resources that a process uses, read from `/proc`. On other systems every reading is an error, which the
//! report shows as an empty cell.

use std::{fs, io, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use procfs_core::{
    FromRead,
    process::{Stat, Status},
};

/// Clock ticks per second in `/proc/PID/stat`: a constant of the Linux interface for programs.
const TICKS: f64 = 100.0;

/// Processor time (user and system, all threads) of all these processes together.
pub(crate) fn cpu(pids: &[u32]) -> Result<Duration> {
    let stats = pids.iter().map(|&pid| read::<Stat>(pid, "stat"));
    stats.map(|stat| stat.map(|stat| time(&stat))).sum()
}

/// Memory in use (resident) of all these processes together, in bytes.
pub(crate) fn resident(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| bytes(read::<Status>(pid, "status")?.vmrss)).sum()
}

/// Memory of all these processes together, in bytes; of what others share, their parts.
pub(crate) fn proportional(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| parse_share(&text(pid, "smaps_rollup")?)).sum()
}

/// The most memory each process used since [`reset_peak`], added up, in bytes.
pub(crate) fn peak(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| bytes(read::<Status>(pid, "status")?.vmhwm)).sum()
}

/// Resets [`peak`]. Where the kernel refuses, the peak is the one since the start.
pub(crate) fn reset_peak(pids: &[u32]) {
    for pid in pids {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// The living processes that `parent` has started.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        read::<Stat>(*pid, "stat").is_ok_and(|stat| u32::try_from(stat.ppid) == Ok(parent))
    };
    pids.filter(is_child).collect()
}

/// Whether this process belongs to the superuser.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|of| of.uid() == 0)
}

/// Processor, cores and kernel, in one line.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(':').nth(1))
        .map_or("unknown processor", str::trim);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, {name}, Linux {}", kernel.trim())
}

fn read<T: FromRead>(pid: u32, file: &str) -> Result<T> {
    T::from_read(text(pid, file)?.as_bytes()).with_context(|| format!("an odd /proc/{pid}/{file}"))
}

fn text(pid: u32, file: &str) -> Result<String> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    let text: io::Result<String> = fs::read_to_string(&path);
    text.with_context(|| format!("read {}: the process is gone", path.display()))
}

fn time(stat: &Stat) -> Duration {
    Duration::from_secs_f64((stat.utime + stat.stime) as f64 / TICKS)
}

fn bytes(kib: Option<u64>) -> Result<u64> {
    Ok(kib.context("a process without memory")? * 1024)
}

fn parse_share(rollup: &str) -> Result<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    bytes(line.and_then(|value| value.trim().strip_suffix(" kB")?.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_bytes() {
        assert_eq!(parse_share("Rss:   9 kB\nPss:   1024 kB\nPss_Anon:  1 kB\n").unwrap(), 1 << 20);
        assert!(parse_share("Rss:   9 kB\n").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_can_be_read() {
        let me = [std::process::id()];
        assert!(cpu(&me).is_ok());
        assert!(peak(&me).unwrap() >= resident(&me).unwrap() / 2);
        assert!((1..=resident(&me).unwrap() * 2).contains(&proportional(&me).unwrap()));
        assert!(cpu(&[u32::MAX]).is_err());
    }
}
