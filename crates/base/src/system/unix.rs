//! Linux and macOS.

use std::{
    fs::{DirBuilder, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

use super::{FileLimits, Stranger};

/// The user id of root, who can write any file in any case.
const ROOT: u32 = 0;
/// The right to write of a file's group and of everybody, in its mode.
const OTHERS_WRITE: u32 = 0o022;

/// The rights with which files and directories are made. An existing one keeps its own.
pub trait Rights {
    /// Only its owner can read, write or enter it.
    fn private(&mut self) -> &mut Self;

    /// Everybody can read or enter it, and only its owner can write to it.
    fn readable(&mut self) -> &mut Self;
}

impl Rights for OpenOptions {
    fn private(&mut self) -> &mut Self {
        self.mode(0o600)
    }

    fn readable(&mut self) -> &mut Self {
        self.mode(0o644)
    }
}

impl Rights for DirBuilder {
    fn private(&mut self) -> &mut Self {
        self.mode(0o700)
    }

    fn readable(&mut self) -> &mut Self {
        self.mode(0o755)
    }
}

/// Whether another user could have written this file; `None` if none could.
#[must_use]
pub fn stranger(file: &Metadata) -> Option<Stranger> {
    let (own, owner) = (geteuid().as_raw(), file.uid());
    match file.mode() {
        _ if owner != own && owner != ROOT => Some(Stranger::Owns(owner)),
        mode if mode & OTHERS_WRITE != 0 => Some(Stranger::Writes(mode & 0o777)),
        _ => None,
    }
}

/// The rights of a file or directory: of its owner, its group and everybody, 3 bits each.
#[must_use]
pub fn mode(file: &Metadata) -> u32 {
    file.mode() & 0o777
}

/// Which file it is, whatever its name: its device and its inode.
#[must_use]
pub fn file_id(file: &Metadata) -> [u64; 2] {
    [file.dev(), file.ino()]
}

/// When a file's content was written and when its inode was, in ns since 1970.
#[must_use]
pub fn times(file: &Metadata) -> [i128; 2] {
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    [ns(file.mtime(), file.mtime_nsec()), ns(file.ctime(), file.ctime_nsec())]
}

/// The home directory of this user.
#[must_use]
pub fn user_home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The bytes that this user can still write to the file system that this path lies on: what is
/// kept for the administrator is not counted.
///
/// # Errors
/// When the path is not there, or cannot be reached.
pub fn free_space(path: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(path)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

/// The name of this machine, as it calls itself.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().trim().to_owned()
}

/// Whether this process is the administrator's: root's.
#[must_use]
pub fn is_administrator() -> bool {
    geteuid().is_root()
}

/// How many files and connections this process may have open.
#[must_use]
pub fn file_limits() -> FileLimits {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    FileLimits { current, maximum }
}

/// Allows this process as many open files as it may allow itself. The usual limit is far lower.
pub fn raise_file_limit() {
    let limits = getrlimit(Resource::Nofile);
    let set = |current| setrlimit(Resource::Nofile, Rlimit { current, ..limits });
    // macOS has no hard limit, and refuses to have no soft one: 10,240 is the most that each version takes.
    let _ = set(limits.maximum).or_else(|_| set(Some(10_240)));
}
