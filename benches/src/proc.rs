//! What a process uses, read from `/proc`. On other systems every reading is an error, which the
//! report shows as an empty cell.

use std::{fs, io, path::PathBuf, time::Duration};

use anyhow::{Context, Result};

/// Clock ticks per second in `/proc/PID/stat`: a constant of the Linux interface for programs.
const TICKS: f64 = 100.0;

/// Processor time (user and system, all threads) of all these processes together.
pub(crate) fn cpu(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|&pid| parse_cpu(&read(pid, "stat")?)).sum()
}

/// Memory in use (resident) of all these processes together, in bytes.
pub(crate) fn resident(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| parse_memory(&read(pid, "status")?, "VmRSS:")).sum()
}

/// Memory of all these processes together, in bytes; of what others share, their parts.
pub(crate) fn proportional(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| parse_memory(&read(pid, "smaps_rollup")?, "Pss:")).sum()
}

/// The most memory each process used since [`reset_peak`], added up, in bytes.
pub(crate) fn peak(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|&pid| parse_memory(&read(pid, "status")?, "VmHWM:")).sum()
}

/// Resets [`peak`]. Where the kernel refuses, the peak is the one since the start.
pub(crate) fn reset_peak(pids: &[u32]) {
    for pid in pids {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
    }
}

/// The processes started by `parent` that live.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| read(pid, "stat").is_ok_and(|stat| parse_parent(&stat) == Some(parent)))
        .collect()
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

fn read(pid: u32, file: &str) -> Result<String> {
    let path = PathBuf::from(format!("/proc/{pid}/{file}"));
    let text: io::Result<String> = fs::read_to_string(&path);
    text.with_context(|| format!("read {}: the process is gone", path.display()))
}

/// `utime` and `stime`: the 14th and 15th field. The second, the name, may hold blanks and
/// brackets, so counting begins after its last bracket.
fn parse_cpu(stat: &str) -> Result<Duration> {
    let mut fields = after_name(stat).skip(11);
    let mut tick = || fields.next()?.parse::<u32>().ok();
    let ticks = tick().zip(tick()).context("an odd /proc/PID/stat")?;
    Ok(Duration::from_secs_f64((f64::from(ticks.0) + f64::from(ticks.1)) / TICKS))
}

fn parse_parent(stat: &str) -> Option<u32> {
    after_name(stat).nth(1)?.parse().ok()
}

fn after_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace()
}

fn parse_memory(status: &str, key: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    let kib = line.and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("no {key} in /proc/PID/status"))? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a (odd) name) S 7 42 42 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 9";

    #[test]
    fn stat_is_read_behind_any_name() {
        assert_eq!(parse_cpu(STAT).unwrap(), Duration::from_secs(2));
        assert_eq!(parse_parent(STAT), Some(7));
        assert!(parse_cpu("1 (x) S").is_err());
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(parse_memory(status, "VmRSS:").unwrap(), 1 << 20);
        assert_eq!(parse_memory(status, "VmHWM:").unwrap(), 2 << 20);
        assert!(parse_memory(status, "VmSwap:").is_err());
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
