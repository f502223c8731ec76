//! Processes as the kernel's table shows them.

use std::{
    collections::HashMap,
    ffi::OsString,
    io,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::process::{Pid, Signal, getsid, kill_process};
use uuid::Uuid;

use super::unsafe_calls::{arguments, directory, list, table};
use crate::SESSION_MARKER;

/// The state of a process that has ended and was not waited for.
const ZOMBIE: u32 = 5;
const MICROS: u64 = 1_000_000;

/// A process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    /// The process group: the id of its leader, alive or not.
    pub(crate) group: u32,
    /// The session of the kernel: the id of its first process.
    pub(crate) session: u32,
    /// The start of the process, in microseconds since 1970. Together with the id it identifies the
    /// process.
    pub(crate) start_time: u64,
    /// Whether the process is a zombie.
    pub(crate) is_dead: bool,
}

/// The status of one process. An error of the kind `NotFound` if there is no such process.
pub(crate) fn stat(pid: u32) -> io::Result<Stat> {
    let entry = table(pid).map_err(gone)?;
    let session = to_pid(pid).and_then(|pid| getsid(Some(pid)).ok());
    Ok(Stat {
        pid: entry.pbi_pid,
        parent: entry.pbi_ppid,
        group: entry.pbi_pgid,
        session: session.map_or(0, |it| it.as_raw_pid().unsigned_abs()),
        start_time: entry.pbi_start_tvsec * MICROS + entry.pbi_start_tvusec,
        is_dead: entry.pbi_status == ZOMBIE,
    })
}

pub(crate) fn all() -> HashMap<u32, Stat> {
    pids().filter_map(|pid| stat(pid).ok()).map(|stat| (stat.pid, stat)).collect()
}

/// The ids of all visible processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    list().into_iter().filter(|pid| *pid != 0)
}

/// The session marker in the environment that a process was started with.
pub(crate) fn marker(pid: u32) -> Option<Uuid> {
    let (_, environment) = words(pid).ok()?;
    environment.iter().find_map(|variable| {
        let value = variable.strip_prefix(SESSION_MARKER.as_bytes())?.strip_prefix(b"=")?;
        Uuid::try_parse_ascii(value).ok()
    })
}

/// The value of a variable in the environment that a process was started with.
pub(crate) fn variable(pid: u32, name: &str) -> Option<OsString> {
    let (_, environment) = words(pid).ok()?;
    let mut variables = environment.iter();
    let value = variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// The time of a process's start, by its [`Stat::start_time`].
pub(crate) fn started_at(start_time: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(start_time)
}

/// The arguments that a process was started with.
pub(crate) fn command_line(pid: u32) -> io::Result<Vec<OsString>> {
    Ok(words(pid)?.0.into_iter().map(OsString::from_vec).collect())
}

pub(crate) fn working_dir(pid: u32) -> io::Result<PathBuf> {
    let path = directory(pid).map_err(gone)?;
    Ok(PathBuf::from(OsString::from_vec(path)))
}

pub(crate) fn owner(pid: u32) -> io::Result<u32> {
    Ok(table(pid).map_err(gone)?.pbi_uid)
}

/// The number of visible processes of a user, which is what the kernel limits here.
pub(crate) fn tasks_of(uid: u32) -> u64 {
    pids().filter(|pid| owner(*pid).is_ok_and(|owner| owner == uid)).count() as u64
}

/// Sends a signal to a process if it is still the one that began at `start_time`. Returns whether
/// the signal was sent. Between the check and the signal the id might be reused: the kernel gives out
/// all others before.
pub(crate) fn signal_exactly(pid: u32, start_time: u64, signal: Signal) -> bool {
    let is_it = stat(pid).is_ok_and(|stat| stat.start_time == start_time);
    is_it && to_pid(pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// The kernel's form of a process id; `None` for an invalid one.
pub(crate) fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The arguments and the environment of a process.
fn words(pid: u32) -> io::Result<(Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    split(&arguments(pid).map_err(gone)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Splits the kernel's form: the number of arguments, the path of the program, zeros, the arguments and
/// the environment, each with a zero behind it.
fn split(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, Vec<Vec<u8>>)> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path = rest.iter().position(|byte| *byte == 0)?;
    let zeros = rest[path..].iter().position(|byte| *byte != 0).unwrap_or(rest.len() - path);
    let mut words = rest[path + zeros..].split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let arguments = words.by_ref().take(count).collect();
    Some((arguments, words.take_while(|word| !word.is_empty()).collect()))
}

/// Maps `ESRCH` to the error of a missing file, as elsewhere.
fn gone(error: io::Error) -> io::Error {
    match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::SRCH) => io::ErrorKind::NotFound.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_environment_are_told_apart() {
        let words = [&2_i32.to_ne_bytes()[..], b"/bin/sh\0\0\0sh\0-c\0A=1\0B=2\0\0rest"].concat();
        let (arguments, environment) = split(&words).unwrap();
        assert_eq!(arguments, [b"sh".to_vec(), b"-c".to_vec()]);
        assert_eq!(environment, [b"A=1".to_vec(), b"B=2".to_vec()]);
        for length in 0..words.len() {
            let _no_panic = split(&words[..length]);
        }
    }

    #[test]
    fn this_process_is_seen_as_it_is() {
        let me = std::process::id();
        assert_eq!(stat(me).unwrap().pid, me);
        assert!(all().contains_key(&me));
        assert_eq!(owner(me).unwrap(), rustix::process::geteuid().as_raw());
        let arguments: Vec<_> = std::env::args_os().collect();
        assert_eq!(command_line(me).unwrap(), arguments);
    }
}
