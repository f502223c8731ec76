//! Resolution of a path beneath a directory, by the kernel in one step; and the path of an opened directory.
//!
//! With `RESOLVE_BENEATH`, `openat2` follows links and `..` that stay below the directory. It fails
//! on those that leave it, on all absolute links and on the magic links of `/proc`, even if entries
//! are swapped during the call. Without `openat2` (before Linux 5.6, in containers that forbid it, on
//! other systems) each directory is opened in turn, and no link is followed.

use std::{
    ffi::CString,
    os::fd::{BorrowedFd, OwnedFd},
};
#[cfg(target_os = "linux")]
use std::{os::fd::AsRawFd as _, sync::OnceLock};

use rustix::{
    fs::{Mode, OFlags, openat},
    io::Errno,
};

use crate::error::FileError;

/// Opens an entry without the right to read it: enough for `stat`, and to resolve other names from
/// it.
#[cfg(target_os = "linux")]
pub(crate) const LOOK: OFlags = OFlags::PATH;
/// The same on systems without such a flag: the entry is opened for reading.
#[cfg(not(target_os = "linux"))]
pub(crate) const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// The most tries of one resolution: the kernel gives up a resolution if an entry is renamed during it.
#[cfg(target_os = "linux")]
const TRIES: usize = 64;

/// Opens a path beneath a directory. The empty path is the directory itself.
pub(crate) fn beneath(
    dir: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
) -> Result<OwnedFd, FileError> {
    let path = if path.is_empty() { "." } else { path };
    resolve(dir, path, flags | OFlags::CLOEXEC).map_err(|errno| match errno {
        Errno::XDEV => FileError::Escapes,
        other => FileError::of("open it", other),
    })
}

#[cfg(target_os = "linux")]
fn resolve(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(dir, path, flags, Mode::empty(), how) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return walk(dir, path, flags),
            Err(Errno::PERM) if is_forbidden() => return walk(dir, path, flags),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Whether this process may not call `openat2` at all. The filters of some containers refuse it with an error that
/// could be about the entry as well, so the answer is from a call that otherwise succeeds. It is asked for once.
#[cfg(target_os = "linux")]
fn is_forbidden() -> bool {
    use rustix::fs::{CWD, ResolveFlags, openat2};

    static FORBIDDEN: OnceLock<bool> = OnceLock::new();
    *FORBIDDEN.get_or_init(|| {
        let flags = LOOK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, "/", flags, Mode::empty());
        let probe =
            top.and_then(|top| openat2(top, ".", flags, Mode::empty(), ResolveFlags::BENEATH));
        matches!(probe, Err(Errno::PERM))
    })
}

#[cfg(not(target_os = "linux"))]
fn resolve(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    walk(dir, path, flags)
}

/// The path of an opened directory; `None` if the system does not report it.
#[cfg(target_os = "linux")]
pub(crate) fn path_of(dir: BorrowedFd<'_>) -> Option<CString> {
    let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
    rustix::fs::readlinkat(rustix::fs::CWD, link, Vec::new()).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn path_of(dir: BorrowedFd<'_>) -> Option<CString> {
    rustix::fs::getpath(dir).ok()
}

/// Opens one name after the other, and follows no link.
pub(super) fn walk(dir: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    if path.starts_with('/') {
        return Err(Errno::XDEV);
    }
    let step = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut names: Vec<&str> = path.split('/').filter(|n| !matches!(*n, "" | ".")).collect();
    let Some(last) = names.pop() else { return openat(dir, ".", flags, Mode::empty()) };
    if last == ".." || names.contains(&"..") {
        return Err(Errno::XDEV);
    }
    let mut at = openat(dir, ".", step, Mode::empty())?;
    for name in names {
        at = openat(&at, name, step, Mode::empty())?;
    }
    openat(&at, last, flags | OFlags::NOFOLLOW, Mode::empty())
}
