//! New files and directories.

use protocol::workspace::limits::UPLOAD_MAX;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use crate::{
    error::{FileError, doing},
    path::RelPath,
    read::within,
    root::{NameInDir, Root},
    write::{PLAIN, Temporary},
};

/// The mode of a new directory, before the umask.
const DIRECTORY: Mode = Mode::from_raw_mode(0o755);

/// Creates an empty file.
///
/// # Errors
///
/// [`FileError::Exists`] if the name is taken, even by a link; [`FileError::NoParent`], and as for
/// every path.
pub fn file(root: &Root, path: &RelPath) -> Result<(), FileError> {
    let place = new_place(root, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(place.dir(), place.name(), flags, PLAIN).map_err(doing("create it"))?;
    Ok(())
}

/// Creates an empty directory. Its parent must exist.
///
/// # Errors
///
/// As [`file()`].
pub fn directory(root: &Root, path: &RelPath) -> Result<(), FileError> {
    let place = new_place(root, path)?;
    mkdirat(place.dir(), place.name(), DIRECTORY).map_err(doing("create it"))
}

/// Creates a file with these bytes, 25 MiB at most. The file gets its name once it is complete.
///
/// # Errors
///
/// As [`file()`], [`FileError::TooLarge`] and [`FileError::NoSpace`].
pub fn upload(root: &Root, path: &RelPath, bytes: &[u8]) -> Result<(), FileError> {
    within(bytes.len() as u64, UPLOAD_MAX as u64)?;
    let place = free_place(root, path)?;
    let mut beside = Temporary::create(&place, PLAIN)?;
    beside.fill(bytes)?;
    beside.publish(place.name())
}

/// The name of a new entry, which is not taken. It is checked before the bytes are written, to save the work; the rename
/// at the end checks again.
pub(super) fn free_place(root: &Root, path: &RelPath) -> Result<NameInDir, FileError> {
    let place = new_place(root, path)?;
    if place.stat_if_there()?.is_some() { Err(FileError::Exists) } else { Ok(place) }
}

/// The name of a new entry. The root cannot be one, since it exists.
pub(super) fn new_place(root: &Root, path: &RelPath) -> Result<NameInDir, FileError> {
    if path.is_root() { Err(FileError::Exists) } else { root.place(path) }
}
