//! Something new.

use protocol::workspace::limits::UPLOAD_MAX;
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use crate::{
    error::{FileError, doing},
    path::RelPath,
    read::within,
    root::{Place, Root},
    write::{PLAIN, Temporary},
};

/// The mode of a new directory, as far as the umask lets it.
const DIRECTORY: Mode = Mode::from_raw_mode(0o755);

/// Creates an empty file.
///
/// # Errors
///
/// [`FileError::Exists`] if anything has the name, a link too; [`FileError::NoParent`], and as for
/// every path.
pub fn file(root: &Root, path: &RelPath) -> Result<(), FileError> {
    let place = new_place(root, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(place.dir(), place.name(), flags, PLAIN).map_err(doing("create it"))?;
    Ok(())
}

/// Creates an empty directory. The one that it is in must be there.
///
/// # Errors
///
/// As [`file()`].
pub fn directory(root: &Root, path: &RelPath) -> Result<(), FileError> {
    let place = new_place(root, path)?;
    mkdirat(place.dir(), place.name(), DIRECTORY).map_err(doing("create it"))
}

/// Creates a file with these bytes, 25 MiB at most. It has its name when it is whole.
///
/// # Errors
///
/// As [`file()`], [`FileError::TooLarge`] and [`FileError::NoSpace`].
pub fn upload(root: &Root, path: &RelPath, bytes: &[u8]) -> Result<(), FileError> {
    within(bytes.len() as u64, UPLOAD_MAX as u64)?;
    let place = new_place(root, path)?;
    if place.stat_if_there()?.is_some() {
        // Told before the bytes are written, and once more by the rename that ends it.
        return Err(FileError::Exists);
    }
    let mut beside = Temporary::create(&place, PLAIN)?;
    beside.fill(bytes)?;
    beside.publish(place.name())
}

/// The place of something new. At the root there is something already.
pub(super) fn new_place(root: &Root, path: &RelPath) -> Result<Place, FileError> {
    if path.is_root() { Err(FileError::Exists) } else { root.place(path) }
}
