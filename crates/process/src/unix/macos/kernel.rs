//! The kernel's calls that the supervisor and the daemon use, where they differ from those of Linux.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt as _,
    },
    path::PathBuf,
};

use nix::sys::socket::{
    getsockopt,
    sockopt::{LocalPeerCred, LocalPeerPid},
};
use rustix::{
    event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents},
    fs::OFlags,
    io::{ioctl_fioclex, ioctl_fionbio},
    process::{Signal, kill_process},
    pty::{OpenptFlags, openpt, ptsname},
};
use tokio::io::{Interest, unix::AsyncFd};
use uuid::Uuid;

use super::unsafe_calls::{close_on_exec, events, take_events};
pub(crate) use super::unsafe_calls::{default_signals, punch_hole};
use crate::unix::{processes, unsafe_calls::watch};

/// Whether orphans become children of the supervisor, so that it hears of their ends.
pub(crate) const HAS_SUBREAPER: bool = false;

/// This program.
pub(crate) fn ourselves() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Does nothing: orphans become children of the first process.
pub(crate) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// Does nothing: a child does not learn that its parent was killed.
pub(crate) fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// Makes every descriptor except the first three close at the next `exec`.
pub(crate) fn close_rest_on_exec() -> io::Result<()> {
    for entry in fs::read_dir("/dev/fd")?.flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number: &i32| *number > 2) else { continue };
        // The descriptor of the listing itself is gone by then, or close-on-exec.
        let _ = close_on_exec(number);
    }
    Ok(())
}

/// A descriptor that is readable when a child has ended.
pub(crate) struct EndedChildren(OwnedFd);

impl EndedChildren {
    pub(crate) fn watch() -> io::Result<Self> {
        let ends = EventFilter::Signal { signal: Signal::CHILD, times: 0 };
        let event = Event::new(ends, EventFlags::ADD | EventFlags::CLEAR, std::ptr::null_mut());
        Ok(Self(events(&[event])?))
    }

    /// Takes all signals that have come.
    pub(crate) fn take(&self) {
        take_events(&self.0);
    }
}

impl AsFd for EndedChildren {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A process that is watched. That it is not mistaken for another one with the same id is checked at
/// each signal, by its start.
#[derive(Debug)]
pub(crate) struct ProcessHold {
    ends: AsyncFd<OwnedFd>,
    pid: u32,
    start_time: u64,
}

impl ProcessHold {
    /// An error of the kind `NotFound`, or `ESRCH`, if there is no such process.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let raw = processes::to_pid(pid).ok_or(io::ErrorKind::NotFound)?;
        let start_time = processes::stat(pid)?.start_time;
        let end = EventFilter::Proc { pid: raw, flags: ProcessEvents::EXIT };
        let event = Event::new(end, EventFlags::ADD, std::ptr::null_mut());
        Ok(Self { ends: watch(events(&[event])?, Interest::READABLE)?, pid, start_time })
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let stat = processes::stat(self.pid)?;
        let raw = processes::to_pid(self.pid).filter(|_| stat.start_time == self.start_time);
        Ok(kill_process(raw.ok_or(io::ErrorKind::NotFound)?, signal)?)
    }

    /// Waits until the process ends.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        self.ends.readable().await.map(|mut ready| ready.retain_ready())
    }
}

/// A pipe whose ends close at the next `exec`.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let ends = rustix::pipe::pipe()?;
    ioctl_fioclex(&ends.0)?;
    ioctl_fioclex(&ends.1)?;
    Ok(ends)
}

/// The same; neither end blocks.
pub(crate) fn non_blocking_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let ends = pipe()?;
    ioctl_fionbio(&ends.0, true)?;
    ioctl_fionbio(&ends.1, true)?;
    Ok(ends)
}

/// The master of a new terminal.
pub(crate) fn new_terminal() -> io::Result<OwnedFd> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    ioctl_fioclex(&master)?;
    Ok(master)
}

/// The other side of a terminal, which is unlocked.
pub(crate) fn slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    let path = ptsname(master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
}

/// A file without a name. It is of the disk, since memory that is shared cannot be read as a file here.
pub(crate) fn memory_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!(".warren-{}", Uuid::from_u128(random()?)));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// The process at the other end of a socket, and its user.
pub(crate) fn peer(socket: impl AsFd) -> io::Result<(u32, u32)> {
    let pid = getsockopt(&socket, LocalPeerPid)?;
    let user = getsockopt(&socket, LocalPeerCred)?;
    Ok((pid.unsigned_abs(), user.uid()))
}
