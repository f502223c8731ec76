//! Processes as `/proc` shows them.
//!
//! `procfs_core` parses the numbers. Command lines and environments are read here, within bounds
//! and as bytes: a process can make its own as long as it likes and of any bytes, but that library
//! reads them whole and only as UTF-8.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use procfs_core::{FromRead, ProcError, process};
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use uuid::Uuid;

use crate::SESSION_MARKER;

/// The most bytes of a process's environment that are read, which is the most that `exec` takes.
const MOST_ENVIRONMENT: u64 = 4 * 1024 * 1024;
/// The most bytes of a command line that are read.
const MOST_COMMAND_LINE: u64 = 256 * 1024;
/// The ticks in a second of a process's start time, as the kernel shows it to programs.
const TICKS: u64 = 100;

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The process group: the id of its leader, alive or not.
    pub(crate) group: u32,
    /// The session of the kernel: the id of its first process.
    pub(crate) session: u32,
    /// The number of threads, which count for the limit of a user.
    pub(crate) threads: u32,
    /// The start of the process, in clock ticks since boot. Together with the id it identifies the
    /// process.
    pub(crate) start_time: u64,
    /// Whether the process is a zombie.
    pub(crate) is_dead: bool,
}

/// The status of one process. An error of the kind `NotFound` if there is no such process.
pub(crate) fn stat(pid: u32) -> io::Result<Stat> {
    let line = fs::read(format!("/proc/{pid}/stat")).map_err(gone)?;
    parse(&line).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(crate) fn all() -> HashMap<u32, Stat> {
    pids().filter_map(|pid| stat(pid).ok()).map(|stat| (stat.pid, stat)).collect()
}

/// The ids of all visible processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The session marker in the environment that a process was started with.
pub(crate) fn marker(pid: u32) -> Option<Uuid> {
    let environment = read(pid, "environ", MOST_ENVIRONMENT).ok()?;
    let variables = environment.split(|byte| *byte == 0);
    let marked = |variable: &[u8]| {
        let value = variable.strip_prefix(SESSION_MARKER.as_bytes())?.strip_prefix(b"=")?;
        Uuid::try_parse_ascii(value).ok()
    };
    variables.filter_map(marked).next()
}

/// The value of a variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<OsString> {
    let environment = read(pid, "environ", MOST_ENVIRONMENT).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// The time of a process's start, by its [`Stat::start_time`].
pub(crate) fn started_at(start_time: u64) -> SystemTime {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let boot = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
    UNIX_EPOCH
        + Duration::from_secs(boot.unwrap_or(0))
        + Duration::from_millis(start_time * 1000 / TICKS)
}

/// The arguments of a process, which it may have changed.
pub(crate) fn command_line(pid: u32) -> io::Result<Vec<OsString>> {
    let mut bytes = read(pid, "cmdline", MOST_COMMAND_LINE)?;
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(bytes.split(|byte| *byte == 0).map(|arg| OsString::from_vec(arg.to_vec())).collect())
}

pub(crate) fn working_dir(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).map_err(gone)
}

pub(crate) fn owner(pid: u32) -> io::Result<u32> {
    let status = process::Status::from_file(format!("/proc/{pid}/status")).map_err(unreadable)?;
    Ok(status.euid)
}

/// The number of visible threads of a user.
pub(crate) fn tasks_of(uid: u32) -> u64 {
    let of_user = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|it| it.uid() == uid);
    pids()
        .filter(of_user)
        .filter_map(|pid| stat(pid).ok())
        .map(|stat| u64::from(stat.threads))
        .sum()
}

/// Sends a signal to a process if it is still the one that began at `start_time`. Returns whether
/// the signal was sent.
pub(crate) fn signal_exactly(pid: u32, start_time: u64, signal: Signal) -> bool {
    let Some(raw) = to_pid(pid) else { return false };
    let Ok(held) = pidfd_open(raw, PidfdFlags::empty()) else { return false };
    // The check comes after the open: a pidfd never changes its process, while the number may be
    // reused before the open.
    let is_it = stat(pid).is_ok_and(|stat| stat.start_time == start_time);
    is_it && pidfd_send_signal(&held, signal).is_ok()
}

/// The kernel's form of a process id; `None` for an invalid one.
pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn read(pid: u32, name: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{pid}/{name}")).map_err(gone)?;
    file.take(most).read_to_end(&mut bytes).map_err(gone)?;
    Ok(bytes)
}

fn parse(line: &[u8]) -> Option<Stat> {
    // `procfs_core` would panic at a line that ends right after the name.
    let whole = line.strip_suffix(b"\n")?;
    let stat = process::Stat::from_read(whole).ok()?;
    // The kernel reports -1 for the group and the session of a process that has lost them.
    let number = |field: i32| u32::try_from(field).unwrap_or(0);
    Some(Stat {
        pid: number(stat.pid),
        parent: number(stat.ppid),
        group: number(stat.pgrp),
        session: number(stat.session),
        threads: u32::try_from(stat.num_threads).ok()?,
        start_time: stat.starttime,
        is_dead: matches!(stat.state, 'Z' | 'X' | 'x'),
    })
}

/// Maps `ESRCH` to the error of a missing file: a process that ends while one of its files is read
/// gives `ESRCH`.
fn gone(error: io::Error) -> io::Error {
    match Errno::from_io_error(&error) {
        Some(Errno::SRCH) => io::ErrorKind::NotFound.into(),
        _ => error,
    }
}

fn unreadable(error: ProcError) -> io::Error {
    match error {
        ProcError::NotFound(_) => io::ErrorKind::NotFound.into(),
        ProcError::PermissionDenied(_) => io::ErrorKind::PermissionDenied.into(),
        ProcError::Io(error, _) => gone(error),
        _ => io::ErrorKind::InvalidData.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `/proc/PID/stat`.
    fn line(name: &str, state: char) -> String {
        let rest =
            "0 0 0 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0";
        format!("42 ({name}) {state} 7 41 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 999 {rest}\n")
    }

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_move_the_fields() {
        let stat = parse(line("a) R (b\n", 'S').as_bytes()).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.group, stat.session), (42, 7, 41, 40));
        assert_eq!((stat.threads, stat.start_time, stat.is_dead), (3, 999, false));
        let name_is_no_text = [b"42 (\xff)", &line("", 'Z').as_bytes()[5..]].concat();
        assert!(parse(&name_is_no_text).unwrap().is_dead);
    }

    #[test]
    fn lines_cut_anywhere_are_refused_without_harm() {
        let line = line("a", 'S');
        for length in 0..line.len() {
            assert_eq!(parse(&line.as_bytes()[..length]), None, "{length}");
        }
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        let me = std::process::id();
        assert_eq!(variable(me, "PATH"), std::env::var_os("PATH"));
        assert_eq!(variable(me, "PAT"), None);
        let since = SystemTime::now().duration_since(started_at(stat(me).unwrap().start_time));
        assert!(since.unwrap_or_default() < Duration::from_secs(3600));
        let stat = stat(me).unwrap();
        assert_eq!(stat.pid, me);
        assert!(all().contains_key(&me));
        assert_eq!(owner(me).unwrap(), rustix::process::geteuid().as_raw());
        assert_eq!(working_dir(me).unwrap(), std::env::current_dir().unwrap());
        let arguments: Vec<_> = std::env::args_os().collect();
        assert_eq!(command_line(me).unwrap(), arguments);
        assert!(tasks_of(rustix::process::geteuid().as_raw()) >= u64::from(stat.threads));
    }

    #[test]
    fn a_process_with_a_reused_id_gets_no_signal() {
        let me = std::process::id();
        let start_time = stat(me).unwrap().start_time;
        assert!(!signal_exactly(me, start_time + 1, Signal::KILL));
        assert!(signal_exactly(me, start_time, Signal::CONT));
        assert!(!signal_exactly(0, 0, Signal::KILL));
        assert!(!signal_exactly(u32::MAX, 0, Signal::KILL));
    }
}
