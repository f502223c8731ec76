//! The kernel's calls that the supervisor and the daemon use, and that others lack.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
};

use nix::sys::{
    signal::SigSet,
    signalfd::{SfdFlags, SignalFd},
};
use rustix::{
    fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create},
    net::sockopt,
    pipe::{PipeFlags, pipe_with},
    process::{
        PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_child_subreaper,
        set_parent_process_death_signal,
    },
    pty::{OpenptFlags, ioctl_tiocgptpeer, openpt},
};
use tokio::io::{Interest, unix::AsyncFd};

pub(crate) use super::unsafe_calls::{close_rest_on_exec, default_signals};
use crate::unix::{processes, unsafe_calls::watch};

/// Whether orphans become children of the supervisor, so that it hears of their ends.
pub(crate) const HAS_SUBREAPER: bool = true;

/// This program, also after its file was replaced.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it may not be known")]
pub(crate) fn ourselves() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// Makes this process the parent of all orphans among its descendants.
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Makes the kernel kill this process when its parent is killed.
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// A descriptor that is readable when a child has ended.
pub(crate) struct EndedChildren(SignalFd);

impl EndedChildren {
    /// The signal must be blocked.
    pub(crate) fn watch() -> io::Result<Self> {
        let mut children = SigSet::empty();
        children.add(nix::sys::signal::Signal::SIGCHLD);
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self(SignalFd::with_flags(&children, flags)?))
    }

    /// Takes all signals that have come.
    pub(crate) fn take(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

impl AsFd for EndedChildren {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A hold on a process, which can never be mistaken for another one with the same id.
#[derive(Debug)]
pub(crate) struct ProcessHold(AsyncFd<OwnedFd>);

impl ProcessHold {
    /// An error of the kind `NotFound`, or `ESRCH`, if there is no such process.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let raw = processes::to_pid(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self(watch(pidfd_open(raw, PidfdFlags::NONBLOCK)?, Interest::READABLE)?))
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(self.0.get_ref(), signal)?)
    }

    /// Waits until the process ends.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        self.0.readable().await.map(|mut ready| ready.retain_ready())
    }
}

/// A pipe whose ends close at the next `exec`.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// The same; neither end blocks.
pub(crate) fn non_blocking_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

const TERMINAL: OpenptFlags =
    OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);

/// The master of a new terminal.
pub(crate) fn new_terminal() -> io::Result<OwnedFd> {
    Ok(openpt(TERMINAL)?)
}

/// The other side of a terminal, which is unlocked.
pub(crate) fn slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    // By the master and not by path: `/dev/pts` may be another one here.
    Ok(ioctl_tiocgptpeer(master, TERMINAL)?)
}

/// A file in memory, without a name.
pub(crate) fn memory_file() -> io::Result<File> {
    Ok(File::from(memfd_create(c"warren-journal", MemfdFlags::CLOEXEC)?))
}

/// Frees a part of a file, which reads as zeros then.
pub(crate) fn punch_hole(file: &File, from: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, flags, from, length)?)
}

/// The process at the other end, and its user.
pub(crate) fn peer(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let peer = sockopt::socket_peercred(socket)?;
    Ok((peer.pid.as_raw_pid().unsigned_abs(), peer.uid.as_raw()))
}
