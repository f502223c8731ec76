//! The TCP ports that processes listen on, as `netstat` says, which is a part of the system.

use std::{
    collections::BTreeSet,
    os::windows::process::CommandExt,
    process::{Command, Stdio},
};

/// The most lines that are read.
const MOST_LINES: usize = 65_536;

/// The TCP ports (IPv4 and IPv6) on which any of these processes listens, sorted and unique. Runs a program, and so
/// blocks for some tenths of a second.
#[must_use]
pub fn listening_ports(pids: &[u32]) -> Vec<u16> {
    if pids.is_empty() {
        return Vec::new();
    }
    let mut netstat = Command::new("netstat");
    netstat.args(["-a", "-n", "-o"]).creation_flags(super::child::NO_WINDOW);
    let output = netstat.stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map(|output| ports(&String::from_utf8_lossy(&output.stdout), pids)).unwrap_or_default()
}

/// The ports in lines such as `TCP 127.0.0.1:8080 0.0.0.0:0 LISTENING 42`. The state is in the system's language: what
/// listens is known by its other end, which is nowhere.
fn ports(lines: &str, pids: &[u32]) -> Vec<u16> {
    let port = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ["TCP", own, other, .., pid] = fields[..] else { return None };
        let listens = other.ends_with(":0") && pids.contains(&pid.parse().ok()?);
        own.rsplit_once(':').filter(|_| listens)?.1.parse::<u16>().ok()
    };
    let found: BTreeSet<u16> = lines.lines().take(MOST_LINES).filter_map(port).collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_for_both_families_in_any_language() {
        let lines = "  Proto  Lokale Adresse   Remoteadresse   Status   PID\r\n  \
                     TCP    127.0.0.1:8080   0.0.0.0:0       ABH\u{d6}REN   42\r\n  \
                     TCP    [::1]:8081       [::]:0          LISTENING   42\r\n  \
                     TCP    127.0.0.1:9      127.0.0.1:8080  ESTABLISHED 42\r\n  \
                     TCP    0.0.0.0:22       0.0.0.0:0       LISTENING   7\r\n  \
                     UDP    0.0.0.0:53       *:*                         42\r\n";
        assert_eq!(ports(lines, &[42]), [8080, 8081]);
        assert_eq!(ports("", &[42]), Vec::<u16>::new());
    }
}
