//! Windows. A user's files are below directories that belong to the user alone, and what is made there inherits that: there are no
//! modes, and so nobody is found who could have written a file.

use std::{
    fs::{self, DirBuilder, Metadata, OpenOptions},
    io,
    os::windows::{ffi::OsStrExt, fs::MetadataExt},
    path::{self, Path, PathBuf},
    ptr,
};

use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;

use super::{FileLimits, Stranger};

/// The time from 1601, from which Windows counts, to 1970, in steps of 100 ns.
const UNTIL_1970: i128 = 116_444_736_000_000_000;

/// The rights with which files and directories are made: those of the directory that they are made in.
pub trait Rights {
    /// Only its owner can read, write or enter it, where that is so of its directory.
    fn private(&mut self) -> &mut Self;

    /// Everybody can read or enter it, where that is so of its directory.
    fn readable(&mut self) -> &mut Self;
}

impl Rights for OpenOptions {
    fn private(&mut self) -> &mut Self {
        self
    }

    fn readable(&mut self) -> &mut Self {
        self
    }
}

impl Rights for DirBuilder {
    fn private(&mut self) -> &mut Self {
        self
    }

    fn readable(&mut self) -> &mut Self {
        self
    }
}

/// Whether another user could have written this file; `None` if none could, or it is not known.
#[must_use]
pub fn stranger(_file: &Metadata) -> Option<Stranger> {
    None
}

/// The rights of a file or directory: its owner's, as far as there are any.
#[must_use]
pub fn mode(_file: &Metadata) -> u32 {
    0o700
}

/// Which file it is, whatever its name: when it was made. The standard library does not tell its number.
#[must_use]
pub fn file_id(file: &Metadata) -> [u64; 2] {
    [0, file.creation_time()]
}

/// When a file's content was written and when the file was made, in ns since 1970.
#[must_use]
pub fn times(file: &Metadata) -> [i128; 2] {
    let ns = |steps: u64| (i128::from(steps) - UNTIL_1970) * 100;
    [ns(file.last_write_time()), ns(file.creation_time())]
}

/// The home directory of this user.
#[must_use]
pub fn user_home() -> Option<PathBuf> {
    std::env::var_os("USERPROFILE").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// The bytes that this user can still write to the disk that this path lies on.
///
/// # Errors
/// When the path is not there, or is on no disk of this machine.
#[expect(unsafe_code, reason = "it has no safe form")]
pub fn free_space(path: &Path) -> io::Result<u64> {
    // A file is on the disk of its directory.
    let directory = if fs::metadata(path)?.is_dir() { Some(path) } else { path.parent() };
    let directory = path::absolute(directory.unwrap_or(path))?;
    let name: Vec<u16> = directory.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the name ends with a zero, the number is there, and the others are not asked for.
    let done = unsafe {
        GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut())
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}

/// The name of this machine, as it calls itself.
#[must_use]
pub fn host_name() -> String {
    let name = std::env::var_os("COMPUTERNAME").unwrap_or_default();
    name.to_string_lossy().trim().to_ascii_lowercase()
}

/// Whether this process is the administrator's. Warren makes no difference of it here.
#[must_use]
pub fn is_administrator() -> bool {
    false
}

/// How many files and connections this process may have open.
#[must_use]
pub fn file_limits() -> FileLimits {
    FileLimits { current: None, maximum: None }
}

/// Allows this process as many open files as it may allow itself: it may have all it wants.
pub fn raise_file_limit() {}
