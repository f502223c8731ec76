//! The TCP ports that processes listen on, as `lsof` says, which is a part of the system.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

/// The most processes that are examined.
const MOST_PROCESSES: usize = 4096;
const LSOF: &str = "/usr/sbin/lsof";

/// The TCP ports (IPv4 and IPv6) on which any of these processes listens, sorted and unique. A
/// process that has ended or cannot be examined adds none. Runs a program, and so blocks for some
/// hundredths of a second.
#[must_use]
pub fn listening_ports(pids: &[u32]) -> Vec<u16> {
    let pids: Vec<String> = pids.iter().take(MOST_PROCESSES).map(u32::to_string).collect();
    if pids.is_empty() {
        return Vec::new();
    }
    let mut lsof = Command::new(LSOF);
    // `-b`: nothing that blocks in the kernel, such as a look at a dead file server.
    lsof.args(["-b", "-w", "-n", "-P", "-a", "-iTCP", "-sTCP:LISTEN", "-Fn", "-p"]);
    let output = lsof.arg(pids.join(",")).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| ports(&String::from_utf8_lossy(&output.stdout))).unwrap_or_default()
}

/// The ports in lines such as `n127.0.0.1:8080` and `n[::1]:8080`.
fn ports(lines: &str) -> Vec<u16> {
    let names = lines.lines().filter_map(|line| line.strip_prefix('n'));
    let found: BTreeSet<u16> =
        names.filter_map(|name| name.rsplit_once(':')?.1.parse().ok()).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_for_both_families_and_each_once() {
        let lines = "p42\nf5\nn127.0.0.1:8080\nf6\nn[::1]:8080\np43\nf7\nn*:22\nn*:*\nnonsense\n";
        assert_eq!(ports(lines), [22, 8080]);
        assert!(ports("").is_empty() && listening_ports(&[]).is_empty());
    }
}
