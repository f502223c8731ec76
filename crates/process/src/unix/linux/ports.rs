//! The TCP ports that processes listen on, from `/proc`.
//!
//! The tables are read line by line, since a machine may have more sockets than should be held at
//! once.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::{self, File},
    io::{BufRead, BufReader, Read},
};

/// The most processes that are examined.
const MOST_PROCESSES: usize = 4096;
/// The most descriptors of one process that are examined.
const MOST_DESCRIPTORS: usize = 65_536;
/// The most bytes of a table of sockets that are read: some hundred thousand sockets.
const MOST_TABLE: u64 = 64 * 1024 * 1024;
/// The state of a listening socket in the table.
const LISTENING: &str = "0A";

/// The TCP ports (IPv4 and IPv6) on which any of these processes listens, sorted and unique. A
/// process that has ended or cannot be examined adds none. Reads files, and so blocks for some
/// milliseconds.
#[must_use]
pub fn listening_ports(pids: &[u32]) -> Vec<u16> {
    let mut found = BTreeSet::new();
    for (network, pids) in by_network(pids) {
        let sockets: HashSet<u64> = pids.iter().flat_map(|pid| sockets_of(*pid)).collect();
        let tables = ["tcp", "tcp6"].map(|table| format!("/proc/{network}/net/{table}"));
        for table in tables.iter().filter(|_| !sockets.is_empty()) {
            found.extend(
                listeners(table).filter(|(_, it)| sockets.contains(it)).map(|(port, _)| port),
            );
        }
    }
    found.into_iter().collect()
}

/// The processes grouped by network namespace, with one of them for each namespace: its table is
/// that of all the others.
fn by_network(pids: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let mut networks: HashMap<_, Vec<u32>> = HashMap::new();
    for pid in pids.iter().take(MOST_PROCESSES) {
        if let Ok(network) = fs::read_link(format!("/proc/{pid}/ns/net")) {
            networks.entry(network).or_default().push(*pid);
        }
    }
    networks.into_values().map(|pids| (pids[0], pids)).collect()
}

/// The inodes of a process's sockets.
fn sockets_of(pid: u32) -> impl Iterator<Item = u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.take(MOST_DESCRIPTORS).filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
}

/// The port and the inode of each listening socket in a table.
fn listeners(table: &str) -> impl Iterator<Item = (u16, u64)> {
    let lines = File::open(table).map(|file| BufReader::new(file.take(MOST_TABLE)).lines());
    lines.into_iter().flatten().map_while(Result::ok).filter_map(|line| listener(&line))
}

fn listener(line: &str) -> Option<(u16, u64)> {
    let fields: Vec<&str> = line.split_whitespace().take(10).collect();
    let &[_, local, _, LISTENING, .., number] = fields.as_slice() else { return None };
    let (_, port) = local.rsplit_once(':')?;
    Some((u16::from_str_radix(port, 16).ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn listeners_are_found_for_both_families_and_connections_are_not() {
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let six = TcpListener::bind("[::1]:0");
        let connection = TcpStream::connect(four.local_addr().unwrap()).unwrap();
        let ports = listening_ports(&[std::process::id()]);
        assert!(ports.contains(&four.local_addr().unwrap().port()));
        if let Ok(six) = &six {
            assert!(ports.contains(&six.local_addr().unwrap().port()));
        }
        assert!(!ports.contains(&connection.local_addr().unwrap().port()));
        let port = four.local_addr().unwrap().port();
        drop((four, connection));
        assert!(!listening_ports(&[std::process::id()]).contains(&port));
    }

    #[test]
    fn ports_of_others_are_not_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut other = std::process::Command::new("cat");
        let mut other = other.stdin(std::process::Stdio::piped()).spawn().unwrap();
        // Before the exec, the child still has the sockets of the tests.
        while crate::unix::processes::command_line(other.id()).unwrap() != ["cat"] {
            std::thread::yield_now();
        }
        let ports = listening_ports(&[other.id(), u32::MAX]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!ports.contains(&listener.local_addr().unwrap().port()));
    }

    #[test]
    fn lines_of_the_table_are_read_and_others_passed_over() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 27402 1 0";
        assert_eq!(listener(line), Some((8080, 27402)));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(listener(""), None);
    }
}
