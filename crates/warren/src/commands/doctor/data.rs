//! The data directory.

use std::path::PathBuf;

use super::finding::Finding;
use crate::commands::words::bytes;

/// With less free space, a server will soon be unable to write.
const LITTLE: u64 = 1 << 30;
/// With less free space, it can hardly write now.
const TOO_LITTLE: u64 = 64 << 20;
/// The bits of a directory's mode that give rights to others than its owner. Warren makes the directory without them.
const OTHERS: u32 = 0o077;

/// The state of the data directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pub(super) path: PathBuf,
    /// `None` if it does not exist.
    pub(super) entry: Option<Entry>,
    /// Whether this user may write to it, or make it.
    pub(super) is_writable: bool,
    /// This process's user.
    pub(super) user: u32,
    /// The process that holds its lock.
    pub(super) holder: Option<u32>,
    /// Free bytes of its disk.
    pub(super) free: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) is_directory: bool,
    pub(super) owner: u32,
    pub(super) mode: u32,
}

pub(super) fn directory(data: &Data) -> Finding {
    const CHECK: &str = "data";
    let path = data.path.display();
    let other = "name another with --data-dir, or make it this user's with chown";
    let Some(entry) = data.entry else {
        return match data.is_writable {
            true => Finding::ok(CHECK, format!("{path}: the first start makes it")),
            false => {
                Finding::fault(CHECK, format!("{path} cannot be made by user {}", data.user), other)
            }
        };
    };
    if !entry.is_directory {
        return Finding::fault(CHECK, format!("{path} is no directory"), other);
    }
    if !data.is_writable {
        let found = format!(
            "{path} belongs to user {}, and user {} cannot write to it",
            entry.owner, data.user
        );
        return Finding::fault(CHECK, found, format!("run this as that user, {other}"));
    }
    if entry.mode & OTHERS != 0 {
        let found = format!("{path} is open to others (mode {:o})", entry.mode & 0o777);
        return Finding::note(CHECK, found, format!("chmod 700 {path}"));
    }
    let used = data.holder.map(|holder| format!(", used by process {holder}")).unwrap_or_default();
    Finding::ok(CHECK, format!("{path}{used}"))
}

pub(super) fn space(data: &Data) -> Finding {
    const CHECK: &str = "space";
    let advice = "make room on that disk: without it neither usage nor sessions are kept";
    match data.free {
        None => Finding::note(
            CHECK,
            "the free space of the data directory's disk is not known",
            "look with df",
        ),
        Some(free) if free < TOO_LITTLE => {
            Finding::fault(CHECK, format!("{} free", bytes(free)), advice)
        }
        Some(free) if free < LITTLE => {
            Finding::note(CHECK, format!("{} free", bytes(free)), advice)
        }
        Some(free) => Finding::ok(CHECK, format!("{} free", bytes(free))),
    }
}

/// The process that holds a lock on the file with this inode, as `/proc/locks` says.
pub(super) fn holder(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, file, ..] = fields[..] else { return None };
        let is_it = file.rsplit(':').next()?.parse::<u64>().ok()? == inode;
        process.parse().ok().filter(|_| is_it)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    fn data(mode: u32) -> Data {
        let entry = Some(Entry { is_directory: true, owner: 7, mode });
        Data { path: "/d".into(), entry, is_writable: true, ..Data::default() }
    }

    #[test]
    fn a_directory_must_be_one_and_writable_and_should_be_closed_to_others() {
        assert_eq!(directory(&data(0o40_700)).state, State::Ok);
        assert_eq!(directory(&data(0o40_755)).state, State::Note);
        assert_eq!(directory(&data(0o40_750)).state, State::Note, "open to a group");
        let foreign = directory(&Data { is_writable: false, ..data(0o700) });
        assert!(foreign.state == State::Fault && foreign.found.contains("belongs to user 7"));
        let file = Entry { is_directory: false, owner: 7, mode: 0 };
        assert_eq!(directory(&Data { entry: Some(file), ..data(0) }).state, State::Fault);
        assert_eq!(directory(&Data { entry: None, ..data(0) }).state, State::Ok);
        let none = Data { entry: None, is_writable: false, ..data(0) };
        assert_eq!(directory(&none).state, State::Fault);
    }

    #[test]
    fn little_space_is_noted_and_too_little_a_fault() {
        let state = |free| space(&Data { free, ..data(0) }).state;
        assert_eq!(state(Some(LITTLE)), State::Ok);
        assert_eq!(state(Some(LITTLE - 1)), State::Note);
        assert_eq!(state(Some(TOO_LITTLE - 1)), State::Fault);
        assert_eq!(state(None), State::Note);
    }

    #[test]
    fn the_holder_of_a_lock_is_found_by_the_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 08:01:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 77 08:01:42 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 78 08:01:43 0 EOF\n";
        assert_eq!(
            [holder(locks, 42), holder(locks, 43), holder(locks, 44)],
            [Some(77), Some(78), None]
        );
    }
}
