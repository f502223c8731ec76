//! Which nodes have answered a challenge of the mesh relay, kept over a restart. Until such a node is
//! forgotten, the mesh relay refuses the constant signature for its id.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::{Duration, SystemTime},
};

use anyhow::Context;
use base::{NodeId, millis, unix_ms};
use mesh_relay::{InMemory, REMEMBERED, Remember};

use crate::data::private;

/// The most nodes that are remembered; beyond that the oldest are forgotten.
const MOST: usize = 100_000;

/// The file is rewritten when it has this many lines.
const MOST_LINES: usize = 2 * MOST;

/// A node that proves itself again is written at most once in this time.
const WRITTEN_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The most lines that wait to be written.
const WAITING: usize = 1_024;

/// A node, and when it last proved itself, in milliseconds since 1970.
type Proof = (u64, NodeId);

/// Remembers nodes in memory, and in a file that a thread writes.
pub(crate) struct Proofs {
    memory: InMemory,
    /// When the proofs that the file has were made, in milliseconds since 1970.
    written: HashMap<NodeId, u64>,
    lines: SyncSender<Proof>,
}

impl Proofs {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let proofs = load(path, unix_ms(SystemTime::now()))?;
        store(path, &proofs)?;
        let mut memory = InMemory::new(MOST);
        for (at, node) in &proofs {
            memory.proved(*node, *at);
        }
        let (lines, taken) = sync_channel(WAITING);
        let (path, count) = (path.to_owned(), proofs.len());
        let thread = thread::Builder::new().name("mesh-proofs".to_owned());
        thread.spawn(move || write(&path, &taken, count)).context("no thread is to be had")?;
        let written = proofs.into_iter().map(|(at, node)| (node, at)).collect();
        Ok(Self { memory, written, lines })
    }
}

impl Remember for Proofs {
    fn proved(&mut self, node: NodeId, unix_ms: u64) {
        self.memory.proved(node, unix_ms);
        let before = self.written.get(&node).copied().unwrap_or(0);
        if unix_ms.saturating_sub(before) < millis(WRITTEN_EVERY) {
            return;
        }
        if self.written.len() >= MOST {
            self.written.clear();
        }
        // If the thread is behind, the proof is written when the node connects again.
        if self.lines.try_send((unix_ms, node)).is_ok() {
            self.written.insert(node, unix_ms);
        }
    }

    fn last_proof(&self, node: &NodeId) -> Option<u64> {
        self.memory.last_proof(node)
    }
}

/// Appends lines until the channel closes.
fn write(path: &Path, lines: &Receiver<Proof>, mut count: usize) {
    while let Ok((at, node)) = lines.recv() {
        count += 1;
        let written = append(path, &format!("{at} {node}\n")).and_then(|()| {
            if count < MOST_LINES {
                return Ok(());
            }
            let proofs = load(path, unix_ms(SystemTime::now()))?;
            count = proofs.len();
            store(path, &proofs)
        });
        if let Err(error) = written {
            tracing::warn!("nodes of the relay are not written down: {error:#}");
        }
    }
}

fn append(path: &Path, line: &str) -> anyhow::Result<()> {
    let mut file = private().append(true).open(path)?;
    Ok(file.write_all(line.as_bytes())?)
}

/// The last proof of each node that is still remembered at `now`, the oldest first. Invalid lines are skipped, such as
/// a part of a line that a crash left.
fn load(path: &Path, now: u64) -> anyhow::Result<Vec<Proof>> {
    let text = match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let proof = |line: &str| {
        let (at, node) = line.split_once(' ')?;
        Some((node.parse::<NodeId>().ok()?, at.parse().ok()?))
    };
    let last: HashMap<NodeId, u64> = text.lines().filter_map(proof).collect();
    // The age is measured from the newest proof, not from the clock alone: a clock that is ahead would delete all.
    let newest = last.values().copied().max().unwrap_or(0).min(now);
    let oldest = newest.saturating_sub(millis(REMEMBERED));
    let mut proofs: Vec<Proof> =
        last.into_iter().map(|(node, at)| (at, node)).filter(|(at, _)| *at >= oldest).collect();
    proofs.sort_unstable();
    let surplus = proofs.len().saturating_sub(MOST);
    Ok(proofs.split_off(surplus))
}

/// Replaces the file atomically; only its owner can read it.
fn store(path: &Path, proofs: &[Proof]) -> anyhow::Result<()> {
    let mut text = String::new();
    for (at, node) in proofs {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{at} {node}");
    }
    let mut new = PathBuf::from(path);
    new.set_extension("new");
    let written = afresh(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&new, path));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

/// Creates a new file. A file that a crash left behind is removed first, because other users may be able to read it.
fn afresh(path: &Path) -> std::io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => private().open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn node(byte: u8) -> NodeId {
        NodeId::new([byte; 32])
    }

    fn file() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mesh.proofs");
        (directory, path)
    }

    #[test]
    fn a_proof_is_known_after_a_restart_for_thirty_days() {
        let (_directory, path) = file();
        let (now, day) = (unix_ms(SystemTime::now()), 24 * 60 * 60 * 1000);
        let old = now - millis(REMEMBERED) - 2 * day;
        let lines = format!("{old} {}\nnonsense\n{} {}\n{now}", node(1), now - day, node(2));
        fs::write(&path, lines).unwrap();
        let proofs = Proofs::open(&path).unwrap();
        let known = [1, 2, 3].map(|byte| proofs.last_proof(&node(byte)));
        assert_eq!(known, [None, Some(now - day), None]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{} {}\n", now - day, node(2)));
    }

    #[test]
    fn a_clock_that_is_far_ahead_forgets_no_proof() {
        let (_directory, path) = file();
        let now = unix_ms(SystemTime::now());
        fs::write(&path, format!("{now} {}\n", node(1))).unwrap();
        let jumped = now + 20 * millis(REMEMBERED);
        assert_eq!(load(&path, jumped).unwrap(), [(now, node(1))]);
    }

    #[test]
    fn only_its_owner_can_read_the_file() {
        let (_directory, path) = file();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        append(&path, "line\n").unwrap();
        assert_eq!(mode(&path), 0o600);
        for left in [&path, &path.with_extension("new")] {
            fs::write(left, "").unwrap();
            fs::set_permissions(left, Permissions::from_mode(0o644)).unwrap();
        }
        Proofs::open(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_proof_is_written_once_a_day() {
        let (_directory, path) = file();
        let (lines, taken) = sync_channel(WAITING);
        let memory = InMemory::new(MOST);
        let mut proofs = Proofs { memory, written: HashMap::new(), lines };
        let now = unix_ms(SystemTime::now());
        let day = millis(WRITTEN_EVERY);
        for at in [now, now + 1, now + day - 1, now + day] {
            proofs.proved(node(1), at);
            assert_eq!(proofs.last_proof(&node(1)), Some(at));
        }
        drop(proofs);
        write(&path, &taken, 0);
        let written = fs::read_to_string(&path).unwrap();
        assert_eq!(written, format!("{now} {id}\n{} {id}\n", now + day, id = node(1)));
        assert_eq!(load(&path, now).unwrap(), [(now + day, node(1))]);
    }

    #[test]
    fn a_long_file_is_rewritten() {
        let (_directory, path) = file();
        let now = unix_ms(SystemTime::now());
        fs::write(&path, format!("{now} {}\n", node(1)).repeat(10)).unwrap();
        let (lines, taken) = sync_channel(1);
        lines.send((now, node(2))).unwrap();
        drop(lines);
        write(&path, &taken, MOST_LINES - 1);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    }
}
